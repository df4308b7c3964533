/** Kinds of `resource.k8s.io`: claims of devices, their templates, classes, slices. */
import { invalidValue } from '../../meta/fielderrors.ts';
import { goForm } from '../../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import type { JsonObject } from '../../json/json-value.ts';
import { checkTemplateMetadata, WHOLE_SUBDOMAIN_NAME } from '../field/validation-metadata.ts';
import { checkDnsLabel, IMMUTABLE, isSame, type Findings } from '../field/validation-rules.ts';
import { isExtendedResource } from '../field/resource-names.ts';
import { checkClaimStatus } from './claim-status.ts';
import {
  checkDeviceClaim,
  checkDeviceConfig,
  checkSelectors,
  ENTRIES_MAX,
} from './device-claims.ts';
import { checkBounded } from './device-lists.ts';
import { checkDriverName } from '../field/driver-name.ts';
import { checkDeviceTaint, checkPoolName } from './device-names.ts';
import { checkSlice } from './device-slices.ts';
import type { RuleTable } from '../field/rule-table.ts';

export const DEVICE_RULES: RuleTable = {
  'resourceclaims.resource.k8s.io': {
    create: (found, claim) => {
      checkDeviceClaim(found, 'spec.devices', objectAt(claim, 'spec', 'devices') ?? {});
    },
    update: checkSpecKept.bind(null, 'resource.v1.ResourceClaimSpec'),
    subresources: { status: checkClaimStatus },
  },
  'resourceclaimtemplates.resource.k8s.io': {
    create: checkTemplate,
    change: checkSpecKept.bind(null, 'resource.v1.ResourceClaimTemplateSpec'),
  },
  'deviceclasses.resource.k8s.io': {
    name: WHOLE_SUBDOMAIN_NAME,
    create: (found, deviceClass) => checkClass(found, deviceClass),
    update: checkClass,
  },
  'resourceslices.resource.k8s.io': {
    create: (found, slice) => checkSlice(found, slice),
    update: checkSlice,
  },
  'devicetaintrules.resource.k8s.io': { create: checkTaintRule, update: checkTaintRule },
};

/** DeviceTaintRule: which devices, and the taint that they get. */
function checkTaintRule(found: Findings, rule: JsonObject): void {
  const selector = objectAt(rule, 'spec', 'deviceSelector') ?? {};
  const at = 'spec.deviceSelector';
  const { driver, pool, device } = selector;
  if (typeof driver === 'string') checkDriverName(found, `${at}.driver`, driver);
  if (typeof pool === 'string') checkPoolName(found, `${at}.pool`, pool);
  if (typeof device === 'string') checkDnsLabel(found, `${at}.device`, device);
  checkDeviceTaint(found, 'spec.taint', objectAt(rule, 'spec', 'taint') ?? {});
}

function checkSpecKept(
  type: string,
  found: Findings,
  next: JsonObject,
  previous: JsonObject,
): void {
  const spec = objectAt(next, 'spec');
  if (isSame(spec, objectAt(previous, 'spec'))) return;
  found.push(invalidValue('spec', goForm(type, spec), IMMUTABLE));
}

function checkTemplate(found: Findings, template: JsonObject): void {
  const metadata = objectAt(template, 'spec', 'metadata');
  checkTemplateMetadata(found, 'spec.metadata', metadata);
  const devices = objectAt(template, 'spec', 'spec', 'devices') ?? {};
  checkDeviceClaim(found, 'spec.spec.devices', devices);
}

/** DeviceClass; what was stored before is not judged by newer bounds. */
function checkClass(found: Findings, deviceClass: JsonObject, previous?: JsonObject): void {
  const spec = objectAt(deviceClass, 'spec') ?? {};
  checkSelectors(found, 'spec.selectors', listAt(spec, 'selectors'));
  const configs = listAt(spec, 'config');
  const isStored =
    previous !== undefined && isSame(objectAt(previous, 'spec')?.['config'], spec['config']);
  checkBounded(found, 'spec.config', configs, ENTRIES_MAX, (config, at) => {
    checkDeviceConfig(found, at, config, isStored);
  });
  const name = spec['extendedResourceName'];
  if (typeof name !== 'string' || isExtendedResource(name)) return;
  const at = 'spec.extendedResourceName';
  found.push(
    invalidValue(
      at,
      stringAt(spec, 'extendedResourceName'),
      'must be a valid extended resource name',
    ),
  );
}
