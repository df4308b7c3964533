/**
 * What selectors of devices see: `device`, with upstream's bounds of its parts, so that the cost of
 * a selector can be told before it runs.
 */
import { objectOf } from './admission-environment.ts';
import { celEnvironment } from './program.ts';
import { BOOL, DYN, mapOf, opaque, STRING, type CelType } from './values/typing.ts';
import type { Environment } from './syntax/environment.ts';

/** Units that one evaluation may cost (upstream's CELSelectorExpressionMaxCost). */
export const SELECTOR_COST_MAX = 1_000_000;

const DOMAIN_LENGTH_MAX = 63;
const ID_LENGTH_MAX = 32;
const DRIVER_LENGTH_MAX = 63;
const VALUE_LENGTH_MAX = 64;
const PARTS_MAX = 32;

function textOf(sizeMax: number): CelType {
  return { ...STRING, sizeMax };
}

/** Parts of a device by domain, then by name. */
function partsOf(part: CelType): CelType {
  const inner = { ...mapOf(textOf(ID_LENGTH_MAX), part), sizeMax: PARTS_MAX };
  return { ...mapOf(textOf(DOMAIN_LENGTH_MAX), inner), sizeMax: PARTS_MAX };
}

const DEVICE = objectOf('kubernetes.DRADevice', {
  driver: textOf(DRIVER_LENGTH_MAX),
  attributes: partsOf({ ...DYN, sizeMax: VALUE_LENGTH_MAX }),
  capacity: partsOf(opaque('kubernetes.Quantity')),
  allowMultipleAllocations: { ...BOOL, sizeMax: 1 },
});

/** The environment of selectors in device classes and claims. */
export const DEVICE_ENVIRONMENT: Environment = celEnvironment({
  variables: { device: DEVICE },
  canBind: true,
});
