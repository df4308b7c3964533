// Written by packages/fleet/tools/generate.ts from bigfleet/lucy.sh/v1alpha1/autoscaler.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { file_google_protobuf_timestamp } from '@bufbuild/protobuf/wkt';

export const file: GenFile = fileDesc(
  'CipiaWdmbGVldC9sdWN5LnNoL3YxYWxwaGExL2F1dG9zY2FsZXIucHJvdG8SGWJpZ2ZsZWV0Lmx1Y3kuc2gudjFhbHBo' +
  'YTEikQEKFENsdXN0ZXJDYXBhY2l0eU5lZWRzEhIKCmNsdXN0ZXJfaWQYASABKAkSLQoJdGltZXN0YW1wGAIgASgLMhou' +
  'Z29vZ2xlLnByb3RvYnVmLlRpbWVzdGFtcBI2CgVuZWVkcxgDIAMoCzInLmJpZ2ZsZWV0Lmx1Y3kuc2gudjFhbHBoYTEu' +
  'Q2FwYWNpdHlOZWVkItkECgxDYXBhY2l0eU5lZWQSSAoMcmVxdWlyZW1lbnRzGAEgAygLMjIuYmlnZmxlZXQubHVjeS5z' +
  'aC52MWFscGhhMS5Ob2RlU2VsZWN0b3JSZXF1aXJlbWVudBJcChNhZ2dyZWdhdGVfcmVzb3VyY2VzGAIgAygLMj8uYmln' +
  'ZmxlZXQubHVjeS5zaC52MWFscGhhMS5DYXBhY2l0eU5lZWQuQWdncmVnYXRlUmVzb3VyY2VzRW50cnkSEAoIcHJpb3Jp' +
  'dHkYAyABKAUSOQoGc3ByZWFkGAUgAygLMikuYmlnZmxlZXQubHVjeS5zaC52MWFscGhhMS5Ub3BvbG9neVNwcmVhZBJN' +
  'ChtpbnRlcnJ1cHRpb25fcGVuYWx0eV9idWNrZXQYBiABKA4yKC5iaWdmbGVldC5sdWN5LnNoLnYxYWxwaGExLlBlbmFs' +
  'dHlCdWNrZXQSTAoacmVjbGFtYXRpb25fcGVuYWx0eV9idWNrZXQYByABKA4yKC5iaWdmbGVldC5sdWN5LnNoLnYxYWxw' +
  'aGExLlBlbmFsdHlCdWNrZXQSRgoIbWluX3VuaXQYCCADKAsyNC5iaWdmbGVldC5sdWN5LnNoLnYxYWxwaGExLkNhcGFj' +
  'aXR5TmVlZC5NaW5Vbml0RW50cnkaOQoXQWdncmVnYXRlUmVzb3VyY2VzRW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVl' +
  'GAIgASgJOgI4ARouCgxNaW5Vbml0RW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVlGAIgASgJOgI4AUoECAQQBSJUCg5U' +
  'b3BvbG9neVNwcmVhZBIUCgx0b3BvbG9neV9rZXkYASABKAkSEAoIbWF4X3NrZXcYAiABKAUSGgoSd2hlbl91bnNhdGlz' +
  'ZmlhYmxlGAMgASgJIkgKF05vZGVTZWxlY3RvclJlcXVpcmVtZW50EgsKA2tleRgBIAEoCRIQCghvcGVyYXRvchgCIAEo' +
  'CRIOCgZ2YWx1ZXMYAyADKAkiJwoPQWNrbm93bGVkZ2VtZW50EhQKDGFja25vd2xlZGdlZBgBIAEoCCrbBQoNUGVuYWx0' +
  'eUJ1Y2tldBIeChpQRU5BTFRZX0JVQ0tFVF9VTlNQRUNJRklFRBAAEhcKE1BFTkFMVFlfQlVDS0VUX1pFUk8QARIeChpQ' +
  'RU5BTFRZX0JVQ0tFVF9IQUxGX0RPTExBUhACEhQKEFBFTkFMVFlfQlVDS0VUXzEQAxIUChBQRU5BTFRZX0JVQ0tFVF8y' +
  'EAQSFAoQUEVOQUxUWV9CVUNLRVRfNBAFEhQKEFBFTkFMVFlfQlVDS0VUXzgQBhIVChFQRU5BTFRZX0JVQ0tFVF8xNhAH' +
  'EhUKEVBFTkFMVFlfQlVDS0VUXzMyEAgSFQoRUEVOQUxUWV9CVUNLRVRfNjQQCRIWChJQRU5BTFRZX0JVQ0tFVF8xMjgQ' +
  'ChIWChJQRU5BTFRZX0JVQ0tFVF8yNTYQCxIWChJQRU5BTFRZX0JVQ0tFVF81MTIQDBIXChNQRU5BTFRZX0JVQ0tFVF8x' +
  'MDI0EA0SFwoTUEVOQUxUWV9CVUNLRVRfMjA0OBAOEhcKE1BFTkFMVFlfQlVDS0VUXzQwOTYQDxIXChNQRU5BTFRZX0JV' +
  'Q0tFVF84MTkyEBASGAoUUEVOQUxUWV9CVUNLRVRfMTYzODQQERIYChRQRU5BTFRZX0JVQ0tFVF8zMjc2OBASEhgKFFBF' +
  'TkFMVFlfQlVDS0VUXzY1NTM2EBMSGQoVUEVOQUxUWV9CVUNLRVRfMTMxMDcyEBQSGQoVUEVOQUxUWV9CVUNLRVRfMjYy' +
  'MTQ0EBUSGQoVUEVOQUxUWV9CVUNLRVRfNTI0Mjg4EBYSGgoWUEVOQUxUWV9CVUNLRVRfMTA0ODU3NhAXEhoKFlBFTkFM' +
  'VFlfQlVDS0VUXzIwOTcxNTIQGBIaChZQRU5BTFRZX0JVQ0tFVF80MTk0MzA0EBkSGgoWUEVOQUxUWV9CVUNLRVRfODM4' +
  'ODYwOBAaEhkKFVBFTkFMVFlfQlVDS0VUX1BJTk5FRBAbMpEBChhJbmZyYXN0cnVjdHVyZUF1dG9zY2FsZXISdQoSVXBk' +
  'YXRlQ2x1c3Rlck5lZWRzEi8uYmlnZmxlZXQubHVjeS5zaC52MWFscGhhMS5DbHVzdGVyQ2FwYWNpdHlOZWVkcxoqLmJp' +
  'Z2ZsZWV0Lmx1Y3kuc2gudjFhbHBoYTEuQWNrbm93bGVkZ2VtZW50KAAwAGIGcHJvdG8z',
  [file_google_protobuf_timestamp],
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

export type ClusterCapacityNeeds = Message<'bigfleet.lucy.sh.v1alpha1.ClusterCapacityNeeds'> & {
  clusterId: string;
  timestamp?: Timestamp;
  needs: CapacityNeed[];
};
export const ClusterCapacityNeedsSchema: GenMessage<ClusterCapacityNeeds> = messageDesc(file, 0);

export type CapacityNeed = Message<'bigfleet.lucy.sh.v1alpha1.CapacityNeed'> & {
  requirements: NodeSelectorRequirement[];
  aggregateResources: { [key: string]: string };
  priority: number;
  spread: TopologySpread[];
  interruptionPenaltyBucket: PenaltyBucket;
  reclamationPenaltyBucket: PenaltyBucket;
  minUnit: { [key: string]: string };
};
export const CapacityNeedSchema: GenMessage<CapacityNeed> = messageDesc(file, 1);

export type TopologySpread = Message<'bigfleet.lucy.sh.v1alpha1.TopologySpread'> & {
  topologyKey: string;
  maxSkew: number;
  /** DoNotSchedule or ScheduleAnyway. */
  whenUnsatisfiable: string;
};
export const TopologySpreadSchema: GenMessage<TopologySpread> = messageDesc(file, 2);

export type NodeSelectorRequirement = Message<'bigfleet.lucy.sh.v1alpha1.NodeSelectorRequirement'> & {
  key: string;
  /** In, NotIn, Exists, DoesNotExist or Same. */
  operator: string;
  values: string[];
};
export const NodeSelectorRequirementSchema: GenMessage<NodeSelectorRequirement> = messageDesc(file, 3);

export type Acknowledgement = Message<'bigfleet.lucy.sh.v1alpha1.Acknowledgement'> & {
  acknowledged: boolean;
};
export const AcknowledgementSchema: GenMessage<Acknowledgement> = messageDesc(file, 4);

export const InfrastructureAutoscaler: GenService<{
  updateClusterNeeds: { methodKind: 'unary'; input: typeof ClusterCapacityNeedsSchema; output: typeof AcknowledgementSchema };
}> = serviceDesc(file, 0);
