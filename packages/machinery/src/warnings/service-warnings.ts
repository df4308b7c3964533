/** What is told to who writes a service that is let through. */
import { listAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import { ipWarnings, networkWarnings } from './field-warnings.ts';

const HINTS = 'service.kubernetes.io/topology-aware-hints';
const MODE = 'service.kubernetes.io/topology-mode';
const EXTERNAL = 'ExternalName';

/** Warnings of a service, new or changed. */
export function* serviceWarnings(service: JsonObject): Iterable<string> {
  const spec = objectAt(service, 'spec');
  const type = stringAt(spec, 'type');
  const isHeadless = type === 'ClusterIP' && stringAt(spec, 'clusterIP') === 'None';
  const externals = listAt(spec, 'externalIPs');
  if (Object.hasOwn(objectAt(service, 'metadata', 'annotations') ?? {}, HINTS)) {
    yield `annotation ${HINTS} is deprecated, please use ${MODE} instead`;
  }
  const single = stringAt(spec, 'clusterIP');
  if (single !== '' && single !== 'None') {
    for (const [index, ip] of listAt(spec, 'clusterIPs').entries()) {
      yield* ipWarnings(`spec.clusterIPs[${index}]`, ip);
    }
  }
  if (isHeadless) {
    const ignored = 'is ignored for headless services';
    if (stringAt(spec, 'loadBalancerIP') !== '') yield `spec.loadBalancerIP ${ignored}`;
    if (externals.length > 0) yield `spec.externalIPs ${ignored}`;
    if (stringAt(spec, 'sessionAffinity') !== 'None') yield `spec.SessionAffinity ${ignored}`;
  }
  for (const [index, ip] of externals.entries()) {
    yield* ipWarnings(`spec.externalIPs[${index}]`, ip);
  }
  if (externals.length > 0 && !isHeadless && type !== EXTERNAL) {
    yield 'spec.externalIPs is deprecated and may no longer be implemented in some clusters';
  }
  yield* ipWarnings('spec.loadBalancerIP', stringAt(spec, 'loadBalancerIP'));
  for (const [index, range] of listAt(spec, 'loadBalancerSourceRanges').entries()) {
    yield* networkWarnings(`spec.loadBalancerSourceRanges[${index}]`, range);
  }
  if (type === EXTERNAL && externals.length > 0) {
    yield `spec.externalIPs is ignored when spec.type is "${EXTERNAL}"`;
  }
  if (type !== EXTERNAL && stringAt(spec, 'externalName') !== '') {
    yield `spec.externalName is ignored when spec.type is not "${EXTERNAL}"`;
  }
  if (stringAt(spec, 'trafficDistribution') === 'PreferClose') {
    yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"';
  }
}
