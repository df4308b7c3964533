/** Draws a picture of bars that is described on stdin, into the file that is named. */
import { text } from 'node:stream/consumers';
import { barSvg, writePicture, type BarPlot } from 'megaplane/plot';

const [file = ''] = process.argv.slice(2);
try {
  await writePicture(file, await barSvg(JSON.parse(await text(process.stdin)) as BarPlot));
} catch (error) {
  process.stderr.write(`--plot: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
