// Written by packages/fleet/tools/generate.ts from bigfleet/v1alpha1/provider.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';

export const file: GenFile = fileDesc(
  'CiBiaWdmbGVldC92MWFscGhhMS9wcm92aWRlci5wcm90bxIRYmlnZmxlZXQudjFhbHBoYTEiKAoHSG9zdFJlZhIQCghw' +
  'cm92aWRlchgBIAEoCRILCgNyZWYYAiABKAkifQoJUmVzb3VyY2VzEj4KCXJlc291cmNlcxgBIAMoCzIrLmJpZ2ZsZWV0' +
  'LnYxYWxwaGExLlJlc291cmNlcy5SZXNvdXJjZXNFbnRyeRowCg5SZXNvdXJjZXNFbnRyeRILCgNrZXkYASABKAkSDQoF' +
  'dmFsdWUYAiABKAk6AjgBIhgKCk1hY2hpbmVSZWYSCgoCaWQYASABKAkiTQoLTWFjaGluZUxpc3QSLAoIbWFjaGluZXMY' +
  'ASADKAsyGi5iaWdmbGVldC52MWFscGhhMS5NYWNoaW5lEhAKCHJldmlzaW9uGAIgASgMInYKCkxpc3RGaWx0ZXISLwoG' +
  'c3RhdGVzGAEgAygOMh8uYmlnZmxlZXQudjFhbHBoYTEuTWFjaGluZVN0YXRlEhMKC21heF9yZXN1bHRzGAQgASgFEhYK' +
  'DnNpbmNlX3JldmlzaW9uGAUgASgMSgQIAhADSgQIAxAEImkKDUNyZWF0ZVJlcXVlc3QSEgoKbWFjaGluZV9pZBgBIAEo' +
  'CRIQCghzaGFyZF9pZBgDIAEoCRITCgtzaGFyZF9lcG9jaBgEIAEoAxIXCg9zZXF1ZW5jZV9udW1iZXIYBSABKANKBAgC' +
  'EAMimAIKEENvbmZpZ3VyZVJlcXVlc3QSEgoKbWFjaGluZV9pZBgBIAEoCRISCgpjbHVzdGVyX2lkGAIgASgJEhYKDmJv' +
  'b3RzdHJhcF9ibG9iGAMgASgMEhAKCHNoYXJkX2lkGAQgASgJEhMKC3NoYXJkX2Vwb2NoGAUgASgDEhcKD3NlcXVlbmNl' +
  'X251bWJlchgGIAEoAxJOCg5zaGFyZF9tZXRhZGF0YRgHIAMoCzI2LmJpZ2ZsZWV0LnYxYWxwaGExLkNvbmZpZ3VyZVJl' +
  'cXVlc3QuU2hhcmRNZXRhZGF0YUVudHJ5GjQKElNoYXJkTWV0YWRhdGFFbnRyeRILCgNrZXkYASABKAkSDQoFdmFsdWUY' +
  'AiABKAk6AjgBIoABCgxEcmFpblJlcXVlc3QSEgoKbWFjaGluZV9pZBgBIAEoCRIcChRncmFjZV9wZXJpb2Rfc2Vjb25k' +
  'cxgCIAEoAxIQCghzaGFyZF9pZBgDIAEoCRITCgtzaGFyZF9lcG9jaBgEIAEoAxIXCg9zZXF1ZW5jZV9udW1iZXIYBSAB' +
  'KAMiYwoNRGVsZXRlUmVxdWVzdBISCgptYWNoaW5lX2lkGAEgASgJEhAKCHNoYXJkX2lkGAIgASgJEhMKC3NoYXJkX2Vw' +
  'b2NoGAMgASgDEhcKD3NlcXVlbmNlX251bWJlchgEIAEoAyJSCg1UcmFuc2l0aW9uQWNrEhQKDG9wZXJhdGlvbl9pZBgB' +
  'IAEoCRIrCgdtYWNoaW5lGAIgASgLMhouYmlnZmxlZXQudjFhbHBoYTEuTWFjaGluZSL5BAoHTWFjaGluZRIKCgJpZBgB' +
  'IAEoCRIuCgVzdGF0ZRgCIAEoDjIfLmJpZ2ZsZWV0LnYxYWxwaGExLk1hY2hpbmVTdGF0ZRIoCgRob3N0GAMgASgLMhou' +
  'YmlnZmxlZXQudjFhbHBoYTEuSG9zdFJlZhIVCg1pbnN0YW5jZV90eXBlGAQgASgJEgwKBHpvbmUYBSABKAkSNgoNY2Fw' +
  'YWNpdHlfdHlwZRgGIAEoDjIfLmJpZ2ZsZWV0LnYxYWxwaGExLkNhcGFjaXR5VHlwZRIWCg5wcmljZV9wZXJfaG91chgH' +
  'IAEoARIgChhpbnRlcnJ1cHRpb25fcHJvYmFiaWxpdHkYCCABKAESLwoJcmVzb3VyY2VzGAkgASgLMhwuYmlnZmxlZXQu' +
  'djFhbHBoYTEuUmVzb3VyY2VzEjYKBmxhYmVscxgKIAMoCzImLmJpZ2ZsZWV0LnYxYWxwaGExLk1hY2hpbmUuTGFiZWxz' +
  'RW50cnkSEgoKbGFzdF9lcnJvchgMIAEoCRIxCgthbGxvY2F0YWJsZRgNIAEoCzIcLmJpZ2ZsZWV0LnYxYWxwaGExLlJl' +
  'c291cmNlcxIPCgdjbHVzdGVyGA4gASgJEkUKDnNoYXJkX21ldGFkYXRhGA8gAygLMi0uYmlnZmxlZXQudjFhbHBoYTEu' +
  'TWFjaGluZS5TaGFyZE1ldGFkYXRhRW50cnkaLQoLTGFiZWxzRW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVlGAIgASgJ' +
  'OgI4ARo0ChJTaGFyZE1ldGFkYXRhRW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVlGAIgASgJOgI4AUoECAsQDCqPAgoM' +
  'TWFjaGluZVN0YXRlEh0KGU1BQ0hJTkVfU1RBVEVfVU5TUEVDSUZJRUQQABIdChlNQUNISU5FX1NUQVRFX1NQRUNVTEFU' +
  'SVZFEAESGgoWTUFDSElORV9TVEFURV9DUkVBVElORxACEhYKEk1BQ0hJTkVfU1RBVEVfSURMRRADEh0KGU1BQ0hJTkVf' +
  'U1RBVEVfQ09ORklHVVJJTkcQBBIcChhNQUNISU5FX1NUQVRFX0NPTkZJR1VSRUQQBRIaChZNQUNISU5FX1NUQVRFX0RS' +
  'QUlOSU5HEAYSGgoWTUFDSElORV9TVEFURV9ERUxFVElORxAHEhgKFE1BQ0hJTkVfU1RBVEVfRkFJTEVEEAgqnAEKDENh' +
  'cGFjaXR5VHlwZRIdChlDQVBBQ0lUWV9UWVBFX1VOU1BFQ0lGSUVEEAASHAoYQ0FQQUNJVFlfVFlQRV9CQVJFX01FVEFM' +
  'EAESGgoWQ0FQQUNJVFlfVFlQRV9SRVNFUlZFRBACEhsKF0NBUEFDSVRZX1RZUEVfT05fREVNQU5EEAMSFgoSQ0FQQUNJ' +
  'VFlfVFlQRV9TUE9UEAQy7wMKEENhcGFjaXR5UHJvdmlkZXISUAoGQ3JlYXRlEiAuYmlnZmxlZXQudjFhbHBoYTEuQ3Jl' +
  'YXRlUmVxdWVzdBogLmJpZ2ZsZWV0LnYxYWxwaGExLlRyYW5zaXRpb25BY2soADAAElYKCUNvbmZpZ3VyZRIjLmJpZ2Zs' +
  'ZWV0LnYxYWxwaGExLkNvbmZpZ3VyZVJlcXVlc3QaIC5iaWdmbGVldC52MWFscGhhMS5UcmFuc2l0aW9uQWNrKAAwABJO' +
  'CgVEcmFpbhIfLmJpZ2ZsZWV0LnYxYWxwaGExLkRyYWluUmVxdWVzdBogLmJpZ2ZsZWV0LnYxYWxwaGExLlRyYW5zaXRp' +
  'b25BY2soADAAElAKBkRlbGV0ZRIgLmJpZ2ZsZWV0LnYxYWxwaGExLkRlbGV0ZVJlcXVlc3QaIC5iaWdmbGVldC52MWFs' +
  'cGhhMS5UcmFuc2l0aW9uQWNrKAAwABJECgNHZXQSHS5iaWdmbGVldC52MWFscGhhMS5NYWNoaW5lUmVmGhouYmlnZmxl' +
  'ZXQudjFhbHBoYTEuTWFjaGluZSgAMAASSQoETGlzdBIdLmJpZ2ZsZWV0LnYxYWxwaGExLkxpc3RGaWx0ZXIaHi5iaWdm' +
  'bGVldC52MWFscGhhMS5NYWNoaW5lTGlzdCgAMABiBnByb3RvMw',
);

export const MachineState = {
  UNSPECIFIED: 0,
  SPECULATIVE: 1,
  CREATING: 2,
  IDLE: 3,
  CONFIGURING: 4,
  CONFIGURED: 5,
  DRAINING: 6,
  DELETING: 7,
  FAILED: 8,
} as const;
export type MachineState = (typeof MachineState)[keyof typeof MachineState];
export const MachineStateSchema: GenEnum<MachineState> = enumDesc(file, 0);

export const CapacityType = {
  UNSPECIFIED: 0,
  BARE_METAL: 1,
  RESERVED: 2,
  ON_DEMAND: 3,
  SPOT: 4,
} as const;
export type CapacityType = (typeof CapacityType)[keyof typeof CapacityType];
export const CapacityTypeSchema: GenEnum<CapacityType> = enumDesc(file, 1);

export type HostRef = Message<'bigfleet.v1alpha1.HostRef'> & {
  provider: string;
  ref: string;
};
export const HostRefSchema: GenMessage<HostRef> = messageDesc(file, 0);

/** Kubernetes quantities by name of the resource. */
export type Resources = Message<'bigfleet.v1alpha1.Resources'> & {
  resources: { [key: string]: string };
};
export const ResourcesSchema: GenMessage<Resources> = messageDesc(file, 1);

export type MachineRef = Message<'bigfleet.v1alpha1.MachineRef'> & {
  id: string;
};
export const MachineRefSchema: GenMessage<MachineRef> = messageDesc(file, 2);

export type MachineList = Message<'bigfleet.v1alpha1.MachineList'> & {
  machines: Machine[];
  /** Cursor for ListFilter.since_revision; may be empty. */
  revision: Uint8Array;
};
export const MachineListSchema: GenMessage<MachineList> = messageDesc(file, 3);

export type ListFilter = Message<'bigfleet.v1alpha1.ListFilter'> & {
  /** Empty: any state. */
  states: MachineState[];
  /** 0: no limit. */
  maxResults: number;
  sinceRevision: Uint8Array;
};
export const ListFilterSchema: GenMessage<ListFilter> = messageDesc(file, 4);

export type CreateRequest = Message<'bigfleet.v1alpha1.CreateRequest'> & {
  machineId: string;
  /** The fencing token of all four changes: who asks, in which life, and the how many-eth time. */
  shardId: string;
  shardEpoch: bigint;
  sequenceNumber: bigint;
};
export const CreateRequestSchema: GenMessage<CreateRequest> = messageDesc(file, 5);

export type ConfigureRequest = Message<'bigfleet.v1alpha1.ConfigureRequest'> & {
  machineId: string;
  clusterId: string;
  bootstrapBlob: Uint8Array;
  shardId: string;
  shardEpoch: bigint;
  sequenceNumber: bigint;
  /** Kept and given back as it is, until a drain ends. */
  shardMetadata: { [key: string]: string };
};
export const ConfigureRequestSchema: GenMessage<ConfigureRequest> = messageDesc(file, 6);

export type DrainRequest = Message<'bigfleet.v1alpha1.DrainRequest'> & {
  machineId: string;
  gracePeriodSeconds: bigint;
  shardId: string;
  shardEpoch: bigint;
  sequenceNumber: bigint;
};
export const DrainRequestSchema: GenMessage<DrainRequest> = messageDesc(file, 7);

export type DeleteRequest = Message<'bigfleet.v1alpha1.DeleteRequest'> & {
  machineId: string;
  shardId: string;
  shardEpoch: bigint;
  sequenceNumber: bigint;
};
export const DeleteRequestSchema: GenMessage<DeleteRequest> = messageDesc(file, 8);

export type TransitionAck = Message<'bigfleet.v1alpha1.TransitionAck'> & {
  operationId: string;
  /** As it is now, mostly still on its way. */
  machine?: Machine;
};
export const TransitionAckSchema: GenMessage<TransitionAck> = messageDesc(file, 9);

/** A slot of quota, a bare host or a member of a cluster: one record for its whole life. */
export type Machine = Message<'bigfleet.v1alpha1.Machine'> & {
  id: string;
  state: MachineState;
  /** Empty while Speculative and Creating. */
  host?: HostRef;
  instanceType: string;
  zone: string;
  capacityType: CapacityType;
  /** US dollars; 0 or more. */
  pricePerHour: number;
  /** In one hour; 0 to 1. */
  interruptionProbability: number;
  /** What the machine has. */
  resources?: Resources;
  labels: { [key: string]: string };
  /** Set when Failed. */
  lastError: string;
  /** What a node on it offers; resources, if it is not set. */
  allocatable?: Resources;
  /** From Configure on, until a drain ends. */
  cluster: string;
  shardMetadata: { [key: string]: string };
};
export const MachineSchema: GenMessage<Machine> = messageDesc(file, 10);

export const CapacityProvider: GenService<{
  /** Speculative -> Creating -> Idle. */
  create: { methodKind: 'unary'; input: typeof CreateRequestSchema; output: typeof TransitionAckSchema };
  /** Idle -> Configuring -> Configured. */
  configure: { methodKind: 'unary'; input: typeof ConfigureRequestSchema; output: typeof TransitionAckSchema };
  /** Configured -> Draining -> Idle. */
  drain: { methodKind: 'unary'; input: typeof DrainRequestSchema; output: typeof TransitionAckSchema };
  /** Idle -> Deleting -> Speculative. */
  delete: { methodKind: 'unary'; input: typeof DeleteRequestSchema; output: typeof TransitionAckSchema };
  get: { methodKind: 'unary'; input: typeof MachineRefSchema; output: typeof MachineSchema };
  list: { methodKind: 'unary'; input: typeof ListFilterSchema; output: typeof MachineListSchema };
}> = serviceDesc(file, 0);
