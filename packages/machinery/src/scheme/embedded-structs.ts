/**
 * Structs that Go's types embed, whose fields stand among those around them in JSON: decoders name
 * them all the same where they tell where a value is wrong.
 */
import { ownMember } from '@megaplane/base/members';

const EMBEDDED: Readonly<Record<string, readonly string[]>> = {
  ConfigMapEnvSource: ['LocalObjectReference'],
  ConfigMapKeySelector: ['LocalObjectReference'],
  ConfigMapProjection: ['LocalObjectReference'],
  ConfigMapVolumeSource: ['LocalObjectReference'],
  DeviceAllocationConfiguration: ['DeviceConfiguration'],
  DeviceClaimConfiguration: ['DeviceConfiguration'],
  DeviceClassConfiguration: ['DeviceConfiguration'],
  EphemeralContainer: ['EphemeralContainerCommon'],
  IngressRule: ['IngressRuleValue'],
  NamedRuleWithOperations: ['RuleWithOperations', 'Rule'],
  PersistentVolumeSpec: ['PersistentVolumeSource'],
  Probe: ['ProbeHandler'],
  RuleWithOperations: ['Rule'],
  SecretEnvSource: ['LocalObjectReference'],
  SecretKeySelector: ['LocalObjectReference'],
  SecretProjection: ['LocalObjectReference'],
  Volume: ['VolumeSource'],
};

/** The name of a field `depth` structs deep in the Go type of this name. */
export function embeddedPath(struct: string, depth: number, field: string): string {
  if (depth === 0) return field;
  return [...(ownMember(EMBEDDED, struct) ?? []).slice(0, depth), field].join('.');
}
