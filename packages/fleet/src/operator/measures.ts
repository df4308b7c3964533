/** What an operator measures of itself. */
import { BucketHistogram, exponential } from '@megaplane/client/bucket-histogram';

/** From a tenth of a millisecond to some seconds. */
const BUILD_SECONDS = exponential(0.0001, 16);

export class OperatorMeasures {
  readonly rollUpSeconds: BucketHistogram = new BucketHistogram(BUILD_SECONDS);
  rollUpBytes = 0;
  rollUps = 0;
}
