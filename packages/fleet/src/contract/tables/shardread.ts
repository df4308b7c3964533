// Written by packages/fleet/tools/generate.ts from bigfleet/v1alpha1/shardread.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { CapacityNeed } from './capacity.ts';
import { file as capacityFile } from './capacity.ts';
import type { Resources } from './provider.ts';
import { file as providerFile } from './provider.ts';

export const file: GenFile = fileDesc(
  'CiFiaWdmbGVldC92MWFscGhhMS9zaGFyZHJlYWQucHJvdG8SEWJpZ2ZsZWV0LnYxYWxwaGExIjgKE0luc3BlY3ROZWVk' +
  'c1JlcXVlc3QSEgoKY2x1c3Rlcl9pZBgBIAEoCRINCgVsaW1pdBgCIAEoBSKFAQoUSW5zcGVjdE5lZWRzUmVzcG9uc2US' +
  'NwoGaGVhZGVyGAEgASgLMiUuYmlnZmxlZXQudjFhbHBoYTEuSW5zcGVjdE5lZWRzSGVhZGVySAASKwoEbmVlZBgCIAEo' +
  'CzIbLmJpZ2ZsZWV0LnYxYWxwaGExLk5lZWRWaWV3SABCBwoFZnJhbWUiWAoSSW5zcGVjdE5lZWRzSGVhZGVyEg0KBWN5' +
  'Y2xlGAEgASgDEh4KFmNvbXB1dGVkX2F0X3VuaXhfbmFub3MYAiABKAMSEwoLdG90YWxfbmVlZHMYAyABKAUiigUKCE5l' +
  'ZWRWaWV3Ei0KBG5lZWQYASABKAsyHy5iaWdmbGVldC52MWFscGhhMS5DYXBhY2l0eU5lZWQSEgoKY2x1c3Rlcl9pZBgC' +
  'IAEoCRIaChJhcnJpdmFsX3VuaXhfbmFub3MYAyABKAMSGwoTcHJvZmlsZV9maW5nZXJwcmludBgEIAEoCRIRCglzYXRp' +
  'c2ZpZWQYBSABKAgSNgoQcmVzaWR1YWxfZGVmaWNpdBgGIAEoCzIcLmJpZ2ZsZWV0LnYxYWxwaGExLlJlc291cmNlcxId' +
  'ChVjbGFpbWVkX21hY2hpbmVfY291bnQYByABKAUSFwoPYm9vdHN0cmFwX2NvdW50GAggASgFEhcKD3Byb3Zpc2lvbl9j' +
  'b3VudBgJIAEoBRITCgtzYW1lX2RvbWFpbhgKIAEoCRIYChBzYW1lX3NhdGlzZmlhYmxlGAsgASgIEhoKEmFjcXVpc2l0' +
  'aW9uX3BhcmtlZBgMIAEoCBIZChFwYXJrZWRfYWdlX2N5Y2xlcxgNIAEoBRIYChBhZ2VfY3ljbGVzX3VubWV0GA4gASgF' +
  'EjQKDHVubWV0X3JlYXNvbhgPIAEoDjIeLmJpZ2ZsZWV0LnYxYWxwaGExLlVubWV0UmVhc29uEjoKD21hdGNoaW5nX3N1' +
  'cHBseRgQIAEoCzIhLmJpZ2ZsZWV0LnYxYWxwaGExLk1hdGNoaW5nU3VwcGx5EjgKCnByZWVtcHRpb24YESABKAsyJC5i' +
  'aWdmbGVldC52MWFscGhhMS5QcmVlbXB0aW9uU3VtbWFyeRI6Cg9zYW1lX2NhbmRpZGF0ZXMYEiADKAsyIS5iaWdmbGVl' +
  'dC52MWFscGhhMS5Eb21haW5Db3ZlcmFnZSJXCg5NYXRjaGluZ1N1cHBseRIMCgRpZGxlGAEgASgFEhIKCmNvbmZpZ3Vy' +
  'ZWQYAiABKAUSEwoLc3BlY3VsYXRpdmUYAyABKAUSDgoGY2FwcGVkGAQgASgIImAKEVByZWVtcHRpb25TdW1tYXJ5EhUK' +
  'DXZpY3RpbXNfZm91bmQYASABKAUSNAoOY2FwYWNpdHlfZnJlZWQYAiABKAsyHC5iaWdmbGVldC52MWFscGhhMS5SZXNv' +
  'dXJjZXMiUQoORG9tYWluQ292ZXJhZ2USDgoGZG9tYWluGAEgASgJEhoKEmNvdmVyYWdlX3Blcl9taWxsZRgCIAEoBRIT' +
  'CgtzYXRpc2ZpYWJsZRgDIAEoCCrDAQoLVW5tZXRSZWFzb24SHAoYVU5NRVRfUkVBU09OX1VOU1BFQ0lGSUVEEAASIQod' +
  'VU5NRVRfUkVBU09OX1BSSU9SSVRZX1NUQVJWRUQQARIjCh9VTk1FVF9SRUFTT05fTk9fTUFUQ0hJTkdfU1VQUExZEAIS' +
  'JwojVU5NRVRfUkVBU09OX1RPUE9MT0dZX1VOU0FUSVNGSUFCTEUQAxIlCiFVTk1FVF9SRUFTT05fUFJFRU1QVElPTl9F' +
  'WEhBVVNURUQQBDJwCglTaGFyZFJlYWQSYwoMSW5zcGVjdE5lZWRzEiYuYmlnZmxlZXQudjFhbHBoYTEuSW5zcGVjdE5l' +
  'ZWRzUmVxdWVzdBonLmJpZ2ZsZWV0LnYxYWxwaGExLkluc3BlY3ROZWVkc1Jlc3BvbnNlKAAwAWIGcHJvdG8z',
  [capacityFile, providerFile],
);

export const UnmetReason = {
  UNSPECIFIED: 0,
  PRIORITY_STARVED: 1,
  NO_MATCHING_SUPPLY: 2,
  TOPOLOGY_UNSATISFIABLE: 3,
  PREEMPTION_EXHAUSTED: 4,
} as const;
export type UnmetReason = (typeof UnmetReason)[keyof typeof UnmetReason];
export const UnmetReasonSchema: GenEnum<UnmetReason> = enumDesc(file, 0);

export type InspectNeedsRequest = Message<'bigfleet.v1alpha1.InspectNeedsRequest'> & {
  /** Empty: all clusters. */
  clusterId: string;
  /** 0: no limit. */
  limit: number;
};
export const InspectNeedsRequestSchema: GenMessage<InspectNeedsRequest> = messageDesc(file, 0);

export type InspectNeedsResponse = Message<'bigfleet.v1alpha1.InspectNeedsResponse'> & {
  frame:
    | { case: 'header'; value: InspectNeedsHeader }
    | { case: 'need'; value: NeedView }
    | { case: undefined; value?: undefined };
};
export const InspectNeedsResponseSchema: GenMessage<InspectNeedsResponse> = messageDesc(file, 1);

export type InspectNeedsHeader = Message<'bigfleet.v1alpha1.InspectNeedsHeader'> & {
  cycle: bigint;
  computedAtUnixNanos: bigint;
  /** Before the limit. */
  totalNeeds: number;
};
export const InspectNeedsHeaderSchema: GenMessage<InspectNeedsHeader> = messageDesc(file, 2);

/** One row of demand after folding, as the last cycle left it. */
export type NeedView = Message<'bigfleet.v1alpha1.NeedView'> & {
  need?: CapacityNeed;
  clusterId: string;
  arrivalUnixNanos: bigint;
  profileFingerprint: string;
  satisfied: boolean;
  residualDeficit?: Resources;
  claimedMachineCount: number;
  bootstrapCount: number;
  provisionCount: number;
  sameDomain: string;
  sameSatisfiable: boolean;
  acquisitionParked: boolean;
  parkedAgeCycles: number;
  ageCyclesUnmet: number;
  unmetReason: UnmetReason;
  /** Of unsatisfied needs only. */
  matchingSupply?: MatchingSupply;
  preemption?: PreemptionSummary;
  sameCandidates: DomainCoverage[];
};
export const NeedViewSchema: GenMessage<NeedView> = messageDesc(file, 3);

export type MatchingSupply = Message<'bigfleet.v1alpha1.MatchingSupply'> & {
  idle: number;
  configured: number;
  speculative: number;
  /** There may be more. */
  capped: boolean;
};
export const MatchingSupplySchema: GenMessage<MatchingSupply> = messageDesc(file, 4);

export type PreemptionSummary = Message<'bigfleet.v1alpha1.PreemptionSummary'> & {
  victimsFound: number;
  capacityFreed?: Resources;
};
export const PreemptionSummarySchema: GenMessage<PreemptionSummary> = messageDesc(file, 5);

export type DomainCoverage = Message<'bigfleet.v1alpha1.DomainCoverage'> & {
  domain: string;
  /** Of the worst resource; 0 to 1000. */
  coveragePerMille: number;
  satisfiable: boolean;
};
export const DomainCoverageSchema: GenMessage<DomainCoverage> = messageDesc(file, 6);

export const ShardRead: GenService<{
  /** The header first; no needs after it: nothing was decided yet. */
  inspectNeeds: { methodKind: 'server_streaming'; input: typeof InspectNeedsRequestSchema; output: typeof InspectNeedsResponseSchema };
}> = serviceDesc(file, 0);
