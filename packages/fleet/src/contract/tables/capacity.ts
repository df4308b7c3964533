// Written by packages/fleet/tools/generate.ts from bigfleet/v1alpha1/capacity.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage } from '@bufbuild/protobuf/codegenv2';

export const file: GenFile = fileDesc(
  'CiBiaWdmbGVldC92MWFscGhhMS9jYXBhY2l0eS5wcm90bxIRYmlnZmxlZXQudjFhbHBoYTEieAoUQ2x1c3RlckNhcGFj' +
  'aXR5TmVlZHMSEgoKY2x1c3Rlcl9pZBgBIAEoCRIcChR0aW1lc3RhbXBfdW5peF9uYW5vcxgCIAEoAxIuCgVuZWVkcxgD' +
  'IAMoCzIfLmJpZ2ZsZWV0LnYxYWxwaGExLkNhcGFjaXR5TmVlZCK4BAoMQ2FwYWNpdHlOZWVkEkAKDHJlcXVpcmVtZW50' +
  'cxgBIAMoCzIqLmJpZ2ZsZWV0LnYxYWxwaGExLk5vZGVTZWxlY3RvclJlcXVpcmVtZW50ElQKE2FnZ3JlZ2F0ZV9yZXNv' +
  'dXJjZXMYAiADKAsyNy5iaWdmbGVldC52MWFscGhhMS5DYXBhY2l0eU5lZWQuQWdncmVnYXRlUmVzb3VyY2VzRW50cnkS' +
  'EAoIcHJpb3JpdHkYAyABKAUSMQoGc3ByZWFkGAUgAygLMiEuYmlnZmxlZXQudjFhbHBoYTEuVG9wb2xvZ3lTcHJlYWQS' +
  'RQobaW50ZXJydXB0aW9uX3BlbmFsdHlfYnVja2V0GAYgASgOMiAuYmlnZmxlZXQudjFhbHBoYTEuUGVuYWx0eUJ1Y2tl' +
  'dBJEChpyZWNsYW1hdGlvbl9wZW5hbHR5X2J1Y2tldBgHIAEoDjIgLmJpZ2ZsZWV0LnYxYWxwaGExLlBlbmFsdHlCdWNr' +
  'ZXQSPgoIbWluX3VuaXQYCCADKAsyLC5iaWdmbGVldC52MWFscGhhMS5DYXBhY2l0eU5lZWQuTWluVW5pdEVudHJ5Eg0K' +
  'BWdyb3VwGAkgASgJGjkKF0FnZ3JlZ2F0ZVJlc291cmNlc0VudHJ5EgsKA2tleRgBIAEoCRINCgV2YWx1ZRgCIAEoCToC' +
  'OAEaLgoMTWluVW5pdEVudHJ5EgsKA2tleRgBIAEoCRINCgV2YWx1ZRgCIAEoCToCOAFKBAgEEAUijwIKF05vZGVTZWxl' +
  'Y3RvclJlcXVpcmVtZW50EgsKA2tleRgBIAEoCRJFCghvcGVyYXRvchgCIAEoDjIzLmJpZ2ZsZWV0LnYxYWxwaGExLk5v' +
  'ZGVTZWxlY3RvclJlcXVpcmVtZW50Lk9wZXJhdG9yEg4KBnZhbHVlcxgDIAMoCSKPAQoIT3BlcmF0b3ISGAoUT1BFUkFU' +
  'T1JfVU5TUEVDSUZJRUQQABIPCgtPUEVSQVRPUl9JThABEhMKD09QRVJBVE9SX05PVF9JThACEhMKD09QRVJBVE9SX0VY' +
  'SVNUUxADEhsKF09QRVJBVE9SX0RPRVNfTk9UX0VYSVNUEAQSEQoNT1BFUkFUT1JfU0FNRRAFIpMCCg5Ub3BvbG9neVNw' +
  'cmVhZBIUCgx0b3BvbG9neV9rZXkYASABKAkSEAoIbWF4X3NrZXcYAiABKAUSTwoSd2hlbl91bnNhdGlzZmlhYmxlGAMg' +
  'ASgOMjMuYmlnZmxlZXQudjFhbHBoYTEuVG9wb2xvZ3lTcHJlYWQuV2hlblVuc2F0aXNmaWFibGUihwEKEVdoZW5VbnNh' +
  'dGlzZmlhYmxlEiIKHldIRU5fVU5TQVRJU0ZJQUJMRV9VTlNQRUNJRklFRBAAEiYKIldIRU5fVU5TQVRJU0ZJQUJMRV9E' +
  'T19OT1RfU0NIRURVTEUQARImCiJXSEVOX1VOU0FUSVNGSUFCTEVfU0NIRURVTEVfQU5ZV0FZEAIq2wUKDVBlbmFsdHlC' +
  'dWNrZXQSHgoaUEVOQUxUWV9CVUNLRVRfVU5TUEVDSUZJRUQQABIXChNQRU5BTFRZX0JVQ0tFVF9aRVJPEAESHgoaUEVO' +
  'QUxUWV9CVUNLRVRfSEFMRl9ET0xMQVIQAhIUChBQRU5BTFRZX0JVQ0tFVF8xEAMSFAoQUEVOQUxUWV9CVUNLRVRfMhAE' +
  'EhQKEFBFTkFMVFlfQlVDS0VUXzQQBRIUChBQRU5BTFRZX0JVQ0tFVF84EAYSFQoRUEVOQUxUWV9CVUNLRVRfMTYQBxIV' +
  'ChFQRU5BTFRZX0JVQ0tFVF8zMhAIEhUKEVBFTkFMVFlfQlVDS0VUXzY0EAkSFgoSUEVOQUxUWV9CVUNLRVRfMTI4EAoS' +
  'FgoSUEVOQUxUWV9CVUNLRVRfMjU2EAsSFgoSUEVOQUxUWV9CVUNLRVRfNTEyEAwSFwoTUEVOQUxUWV9CVUNLRVRfMTAy' +
  'NBANEhcKE1BFTkFMVFlfQlVDS0VUXzIwNDgQDhIXChNQRU5BTFRZX0JVQ0tFVF80MDk2EA8SFwoTUEVOQUxUWV9CVUNL' +
  'RVRfODE5MhAQEhgKFFBFTkFMVFlfQlVDS0VUXzE2Mzg0EBESGAoUUEVOQUxUWV9CVUNLRVRfMzI3NjgQEhIYChRQRU5B' +
  'TFRZX0JVQ0tFVF82NTUzNhATEhkKFVBFTkFMVFlfQlVDS0VUXzEzMTA3MhAUEhkKFVBFTkFMVFlfQlVDS0VUXzI2MjE0' +
  'NBAVEhkKFVBFTkFMVFlfQlVDS0VUXzUyNDI4OBAWEhoKFlBFTkFMVFlfQlVDS0VUXzEwNDg1NzYQFxIaChZQRU5BTFRZ' +
  'X0JVQ0tFVF8yMDk3MTUyEBgSGgoWUEVOQUxUWV9CVUNLRVRfNDE5NDMwNBAZEhoKFlBFTkFMVFlfQlVDS0VUXzgzODg2' +
  'MDgQGhIZChVQRU5BTFRZX0JVQ0tFVF9QSU5ORUQQG2IGcHJvdG8z',
);

/** Dollars, rounded up to the next bound: the name tells the bound. */
export const PenaltyBucket = {
  UNSPECIFIED: 0,
  ZERO: 1,
  HALF_DOLLAR: 2,
  _1: 3,
  _2: 4,
  _4: 5,
  _8: 6,
  _16: 7,
  _32: 8,
  _64: 9,
  _128: 10,
  _256: 11,
  _512: 12,
  _1024: 13,
  _2048: 14,
  _4096: 15,
  _8192: 16,
  _16384: 17,
  _32768: 18,
  _65536: 19,
  _131072: 20,
  _262144: 21,
  _524288: 22,
  _1048576: 23,
  _2097152: 24,
  _4194304: 25,
  _8388608: 26,
  PINNED: 27,
} as const;
export type PenaltyBucket = (typeof PenaltyBucket)[keyof typeof PenaltyBucket];
export const PenaltyBucketSchema: GenEnum<PenaltyBucket> = enumDesc(file, 0);

/** All demand of one cluster. Demand that is absent is withdrawn; an empty list wants nothing. */
export type ClusterCapacityNeeds = Message<'bigfleet.v1alpha1.ClusterCapacityNeeds'> & {
  /** Stable for the life of the cluster; the key of the replacement. */
  clusterId: string;
  /** When the operator built it. */
  timestampUnixNanos: bigint;
  needs: CapacityNeed[];
};
export const ClusterCapacityNeedsSchema: GenMessage<ClusterCapacityNeeds> = messageDesc(file, 0);

/** One row: requests of pods that agree in profile and group, added up. */
export type CapacityNeed = Message<'bigfleet.v1alpha1.CapacityNeed'> & {
  /** What each machine must satisfy, and at most one Same. */
  requirements: NodeSelectorRequirement[];
  /** Sum of the requests, Kubernetes quantities by name of the resource. */
  aggregateResources: { [key: string]: string };
  /** Higher is served first. */
  priority: number;
  spread: TopologySpread[];
  interruptionPenaltyBucket: PenaltyBucket;
  reclamationPenaltyBucket: PenaltyBucket;
  /** Largest request of each resource: each machine must cover all of it alone. */
  minUnit: { [key: string]: string };
  /** Identity of a gang, empty for plain needs; it has no meaning but equality. */
  group: string;
};
export const CapacityNeedSchema: GenMessage<CapacityNeed> = messageDesc(file, 1);

export const NodeSelectorRequirement_Operator = {
  UNSPECIFIED: 0,
  IN: 1,
  NOT_IN: 2,
  EXISTS: 3,
  DOES_NOT_EXIST: 4,
  /** All machines of the group carry one value of the key; values, if any, are the choice. */
  SAME: 5,
} as const;
export type NodeSelectorRequirement_Operator = (typeof NodeSelectorRequirement_Operator)[keyof typeof NodeSelectorRequirement_Operator];
export const NodeSelectorRequirement_OperatorSchema: GenEnum<NodeSelectorRequirement_Operator> = enumDesc(file, 2, 0);

export type NodeSelectorRequirement = Message<'bigfleet.v1alpha1.NodeSelectorRequirement'> & {
  key: string;
  operator: NodeSelectorRequirement_Operator;
  values: string[];
};
export const NodeSelectorRequirementSchema: GenMessage<NodeSelectorRequirement> = messageDesc(file, 2);

export const TopologySpread_WhenUnsatisfiable = {
  UNSPECIFIED: 0,
  DO_NOT_SCHEDULE: 1,
  SCHEDULE_ANYWAY: 2,
} as const;
export type TopologySpread_WhenUnsatisfiable = (typeof TopologySpread_WhenUnsatisfiable)[keyof typeof TopologySpread_WhenUnsatisfiable];
export const TopologySpread_WhenUnsatisfiableSchema: GenEnum<TopologySpread_WhenUnsatisfiable> = enumDesc(file, 3, 0);

export type TopologySpread = Message<'bigfleet.v1alpha1.TopologySpread'> & {
  topologyKey: string;
  maxSkew: number;
  whenUnsatisfiable: TopologySpread_WhenUnsatisfiable;
};
export const TopologySpreadSchema: GenMessage<TopologySpread> = messageDesc(file, 3);
