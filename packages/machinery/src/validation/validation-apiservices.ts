/** API services (`apiregistration.k8s.io`): who serves a version of a group. */
import { invalidValue, notSupported, required } from '../meta/fielderrors.ts';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import {
  dns1035LabelErrors,
  dnsSubdomainErrors,
  pathSegmentErrors,
  portNumberErrors,
} from '../meta/names.ts';
import { SEGMENT_NAME } from './field/validation-metadata.ts';
import { eachObject, invalidEach, type Findings } from './field/validation-rules.ts';
import type { RuleTable } from './field/rule-table.ts';

export const API_SERVICE_RULES: RuleTable = {
  'apiservices.apiregistration.k8s.io': {
    name: SEGMENT_NAME,
    isForeign: true,
    create: checkApiService,
    subresources: { status: checkReported },
  },
};

const STATUSES = ['True', 'False', 'Unknown'];

function checkReported(found: Findings, apiService: JsonObject): void {
  eachObject(listAt(apiService, 'status', 'conditions'), 'status.conditions', (condition, at) => {
    const status = stringAt(condition, 'status');
    if (!STATUSES.includes(status)) found.push(notSupported(`${at}.status`, status, STATUSES));
  });
}

const GROUP_PRIORITY_MAX = 20_000;
const VERSION_PRIORITY_MAX = 1_000;

function checkApiService(found: Findings, apiService: JsonObject): void {
  const spec = objectAt(apiService, 'spec') ?? {};
  const [group, version] = [stringAt(spec, 'group'), stringAt(spec, 'version')];
  const wanted = `${version}.${group}`;
  for (const field of ['generateName', 'name']) {
    const name = stringAt(apiService, 'metadata', field);
    if (name === '' || pathSegmentErrors(name).length > 0 || name === wanted) continue;
    const text = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(wanted)}`;
    found.push(invalidValue(`metadata.${field}`, name, text));
  }
  if (group !== '') invalidEach(found, 'spec.group', group, dnsSubdomainErrors(group));
  else if (version !== 'v1') {
    const text = 'only v1 may have an empty group and it better be legacy kube';
    found.push(required('spec.group', text));
  }
  invalidEach(found, 'spec.version', version, dns1035LabelErrors(version));
  for (const [field, most] of [
    ['groupPriorityMinimum', GROUP_PRIORITY_MAX],
    ['versionPriority', VERSION_PRIORITY_MAX],
  ] as const) {
    const number = numberAt(spec, field);
    if (number > 0 && number <= most) continue;
    found.push(invalidValue(`spec.${field}`, number, `must be positive and less than ${most}`));
  }
  checkServer(found, spec);
}

function checkServer(found: Findings, spec: JsonObject): void {
  const service = objectAt(spec, 'service');
  const bundle = stringAt(spec, 'caBundle');
  const isInsecure = spec['insecureSkipTLSVerify'] === true;
  const insecure = 'spec.insecureSkipTLSVerify';
  if (service === undefined) {
    if (bundle !== '') {
      const size = `${Buffer.from(bundle, 'base64').length} bytes`;
      const text = 'local APIServices may not have a caBundle';
      found.push(invalidValue('spec.caBundle', size, text));
    }
    if (!isInsecure) return;
    const text = 'local APIServices may not have insecureSkipTLSVerify';
    found.push(invalidValue(insecure, true, text));
    return;
  }
  for (const field of ['namespace', 'name']) {
    if (stringAt(service, field) === '') found.push(required(`spec.service.${field}`));
  }
  const port = numberAt(service, 'port');
  const faults = portNumberErrors(port);
  if (faults.length > 0) {
    const text = `port is not valid: ${faults.join(', ')}`;
    found.push(invalidValue('spec.service.port', port, text));
  }
  if (!isInsecure || bundle === '') return;
  found.push(invalidValue(insecure, true, 'may not be true if caBundle is present'));
}
