// Written by packages/fleet/tools/generate.ts from bigfleet/v1alpha1/shard.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { ClusterCapacityNeeds, NodeSelectorRequirement } from './capacity.ts';
import { file as capacityFile } from './capacity.ts';
import type { MachineState, Resources } from './provider.ts';
import { file as providerFile } from './provider.ts';

export const file: GenFile = fileDesc(
  'Ch1iaWdmbGVldC92MWFscGhhMS9zaGFyZC5wcm90bxIRYmlnZmxlZXQudjFhbHBoYTEigAIKD09wZXJhdG9yTWVzc2Fn' +
  'ZRIpCgVoZWxsbxgBIAEoCzIYLmJpZ2ZsZWV0LnYxYWxwaGExLkhlbGxvSAASOQoGcm9sbHVwGAIgASgLMicuYmlnZmxl' +
  'ZXQudjFhbHBoYTEuQ2x1c3RlckNhcGFjaXR5TmVlZHNIABJGChJib290c3RyYXBfcmVzcG9uc2UYAyABKAsyKC5iaWdm' +
  'bGVldC52MWFscGhhMS5Cb290c3RyYXBCbG9iUmVzcG9uc2VIABI0CgtyZWNsYWltX2FjaxgEIAEoCzIdLmJpZ2ZsZWV0' +
  'LnYxYWxwaGExLlJlY2xhaW1BY2tIAEIJCgdwYXlsb2FkIt8CCgxTaGFyZE1lc3NhZ2USMQoDYWNrGAEgASgLMiIuYmln' +
  'ZmxlZXQudjFhbHBoYTEuQWNrbm93bGVkZ2VtZW50SAASQAoRYm9vdHN0cmFwX3JlcXVlc3QYAiABKAsyIy5iaWdmbGVl' +
  'dC52MWFscGhhMS5Cb290c3RyYXBSZXF1ZXN0SAASRAoTcmVjbGFpbV9pbnN0cnVjdGlvbhgDIAEoCzIlLmJpZ2ZsZWV0' +
  'LnYxYWxwaGExLlJlY2xhaW1JbnN0cnVjdGlvbkgAEj8KEW5vZGVfc3RhdGVfdXBkYXRlGAQgASgLMiIuYmlnZmxlZXQu' +
  'djFhbHBoYTEuTm9kZVN0YXRlVXBkYXRlSAASSAoSYXZhaWxhYmxlX2NhcGFjaXR5GAUgASgLMiouYmlnZmxlZXQudjFh' +
  'bHBoYTEuQXZhaWxhYmxlQ2FwYWNpdHlVcGRhdGVIAEIJCgdwYXlsb2FkIjsKBUhlbGxvEhIKCmNsdXN0ZXJfaWQYASAB' +
  'KAkSGAoQcHJvdG9jb2xfdmVyc2lvbhgDIAEoCUoECAIQAyJOCg9BY2tub3dsZWRnZW1lbnQSDAoEZWNobxgBIAEoCRIY' +
  'ChBjb29yZGluYXRvcl90ZXJtGAIgASgDEhMKC3NoYXJkX2Vwb2NoGAMgASgDInwKEEJvb3RzdHJhcFJlcXVlc3QSEgoK' +
  'cmVxdWVzdF9pZBgBIAEoCRJACgxyZXF1aXJlbWVudHMYAiADKAsyKi5iaWdmbGVldC52MWFscGhhMS5Ob2RlU2VsZWN0' +
  'b3JSZXF1aXJlbWVudBISCgpjbHVzdGVyX2lkGAMgASgJImIKFUJvb3RzdHJhcEJsb2JSZXNwb25zZRISCgpyZXF1ZXN0' +
  'X2lkGAEgASgJEhEKCXVzZXJfZGF0YRgCIAEoDBITCgt0dGxfc2Vjb25kcxgDIAEoAxINCgVlcnJvchgEIAEoCSJ1ChJS' +
  'ZWNsYWltSW5zdHJ1Y3Rpb24SFgoOaW5zdHJ1Y3Rpb25faWQYASABKAkSDQoFbm9kZXMYAiADKAkSHAoUZ3JhY2VfcGVy' +
  'aW9kX3NlY29uZHMYAyABKAMSGgoScHJlZW1wdG9yX3ByaW9yaXR5GAQgASgFIjsKClJlY2xhaW1BY2sSFgoOaW5zdHJ1' +
  'Y3Rpb25faWQYASABKAkSFQoNbm9kZXNfc3RhcnRlZBgCIAEoBSKNAwoPTm9kZVN0YXRlVXBkYXRlEhYKDnN1cGVyc2Vk' +
  'ZXNfa2V5GAEgASgJEhIKCm1hY2hpbmVfaWQYAiABKAkSEgoKY2x1c3Rlcl9pZBgDIAEoCRIuCgVzdGF0ZRgEIAEoDjIf' +
  'LmJpZ2ZsZWV0LnYxYWxwaGExLk1hY2hpbmVTdGF0ZRIRCglub2RlX25hbWUYBSABKAkSEwoLcHJvdmlkZXJfaWQYBiAB' +
  'KAkSEgoKbGFzdF9lcnJvchgIIAEoCRI+CgZsYWJlbHMYCSADKAsyLi5iaWdmbGVldC52MWFscGhhMS5Ob2RlU3RhdGVV' +
  'cGRhdGUuTGFiZWxzRW50cnkSLwoJcmVzb3VyY2VzGAogASgLMhwuYmlnZmxlZXQudjFhbHBoYTEuUmVzb3VyY2VzEigK' +
  'BnRhaW50cxgLIAMoCzIYLmJpZ2ZsZWV0LnYxYWxwaGExLlRhaW50Gi0KC0xhYmVsc0VudHJ5EgsKA2tleRgBIAEoCRIN' +
  'CgV2YWx1ZRgCIAEoCToCOAFKBAgHEAgiMwoFVGFpbnQSCwoDa2V5GAEgASgJEg0KBXZhbHVlGAIgASgJEg4KBmVmZmVj' +
  'dBgDIAEoCSKwAwoXQXZhaWxhYmxlQ2FwYWNpdHlVcGRhdGUSFgoOc3VwZXJzZWRlc19rZXkYASABKAkSQAoMcmVxdWly' +
  'ZW1lbnRzGAIgAygLMiouYmlnZmxlZXQudjFhbHBoYTEuTm9kZVNlbGVjdG9yUmVxdWlyZW1lbnQSLwoJcmVzb3VyY2Vz' +
  'GAMgASgLMhwuYmlnZmxlZXQudjFhbHBoYTEuUmVzb3VyY2VzEhcKD2F2YWlsYWJsZV9jb3VudBgEIAEoBRJJCgpjb25m' +
  'aWRlbmNlGAUgASgOMjUuYmlnZmxlZXQudjFhbHBoYTEuQXZhaWxhYmxlQ2FwYWNpdHlVcGRhdGUuQ29uZmlkZW5jZRIV' +
  'Cg1jb3N0X3Blcl9ob3VyGAYgASgBIn0KCkNvbmZpZGVuY2USGgoWQ09ORklERU5DRV9VTlNQRUNJRklFRBAAEhMKD0NP' +
  'TkZJREVOQ0VfTk9ORRABEhIKDkNPTkZJREVOQ0VfTE9XEAISFQoRQ09ORklERU5DRV9NRURJVU0QAxITCg9DT05GSURF' +
  'TkNFX0hJR0gQBEoECAcQCEoECAgQCUoECAkQCjJbCgVTaGFyZBJSCgdTZXNzaW9uEiIuYmlnZmxlZXQudjFhbHBoYTEu' +
  'T3BlcmF0b3JNZXNzYWdlGh8uYmlnZmxlZXQudjFhbHBoYTEuU2hhcmRNZXNzYWdlKAEwAWIGcHJvdG8z',
  [capacityFile, providerFile],
);

export type OperatorMessage = Message<'bigfleet.v1alpha1.OperatorMessage'> & {
  payload:
    | { case: 'hello'; value: Hello }
    | { case: 'rollup'; value: ClusterCapacityNeeds }
    | { case: 'bootstrapResponse'; value: BootstrapBlobResponse }
    | { case: 'reclaimAck'; value: ReclaimAck }
    | { case: undefined; value?: undefined };
};
export const OperatorMessageSchema: GenMessage<OperatorMessage> = messageDesc(file, 0);

export type ShardMessage = Message<'bigfleet.v1alpha1.ShardMessage'> & {
  payload:
    | { case: 'ack'; value: Acknowledgement }
    | { case: 'bootstrapRequest'; value: BootstrapRequest }
    | { case: 'reclaimInstruction'; value: ReclaimInstruction }
    | { case: 'nodeStateUpdate'; value: NodeStateUpdate }
    | { case: 'availableCapacity'; value: AvailableCapacityUpdate }
    | { case: undefined; value?: undefined };
};
export const ShardMessageSchema: GenMessage<ShardMessage> = messageDesc(file, 1);

export type Hello = Message<'bigfleet.v1alpha1.Hello'> & {
  clusterId: string;
  protocolVersion: string;
};
export const HelloSchema: GenMessage<Hello> = messageDesc(file, 2);

/** After Hello and after roll-ups; for people to read, nothing follows from it. */
export type Acknowledgement = Message<'bigfleet.v1alpha1.Acknowledgement'> & {
  echo: string;
  coordinatorTerm: bigint;
  shardEpoch: bigint;
};
export const AcknowledgementSchema: GenMessage<Acknowledgement> = messageDesc(file, 3);

/** Asks for what a machine needs to join the cluster. */
export type BootstrapRequest = Message<'bigfleet.v1alpha1.BootstrapRequest'> & {
  requestId: string;
  requirements: NodeSelectorRequirement[];
  clusterId: string;
};
export const BootstrapRequestSchema: GenMessage<BootstrapRequest> = messageDesc(file, 4);

export type BootstrapBlobResponse = Message<'bigfleet.v1alpha1.BootstrapBlobResponse'> & {
  requestId: string;
  userData: Uint8Array;
  /** For how long the blob is good. */
  ttlSeconds: bigint;
  /** Not empty: there is no blob for such a machine. */
  error: string;
};
export const BootstrapBlobResponseSchema: GenMessage<BootstrapBlobResponse> = messageDesc(file, 5);

/** Cordon these nodes and evict their pods. */
export type ReclaimInstruction = Message<'bigfleet.v1alpha1.ReclaimInstruction'> & {
  instructionId: string;
  nodes: string[];
  gracePeriodSeconds: bigint;
  /** 0: nobody takes them, they are not wanted any more. */
  preemptorPriority: number;
};
export const ReclaimInstructionSchema: GenMessage<ReclaimInstruction> = messageDesc(file, 6);

/** The nodes are cordoned; their drain goes on. */
export type ReclaimAck = Message<'bigfleet.v1alpha1.ReclaimAck'> & {
  instructionId: string;
  nodesStarted: number;
};
export const ReclaimAckSchema: GenMessage<ReclaimAck> = messageDesc(file, 7);

export type NodeStateUpdate = Message<'bigfleet.v1alpha1.NodeStateUpdate'> & {
  /** `node:` and the id of the machine: a newer message makes an older one needless. */
  supersedesKey: string;
  machineId: string;
  clusterId: string;
  state: MachineState;
  nodeName: string;
  providerId: string;
  lastError: string;
  labels: { [key: string]: string };
  resources?: Resources;
  taints: Taint[];
};
export const NodeStateUpdateSchema: GenMessage<NodeStateUpdate> = messageDesc(file, 8);

export type Taint = Message<'bigfleet.v1alpha1.Taint'> & {
  key: string;
  value: string;
  effect: string;
};
export const TaintSchema: GenMessage<Taint> = messageDesc(file, 9);

export const AvailableCapacityUpdate_Confidence = {
  UNSPECIFIED: 0,
  NONE: 1,
  LOW: 2,
  MEDIUM: 3,
  HIGH: 4,
} as const;
export type AvailableCapacityUpdate_Confidence = (typeof AvailableCapacityUpdate_Confidence)[keyof typeof AvailableCapacityUpdate_Confidence];
export const AvailableCapacityUpdate_ConfidenceSchema: GenEnum<AvailableCapacityUpdate_Confidence> = enumDesc(file, 10, 0);

/** What could be had just now; nothing is reserved by it. */
export type AvailableCapacityUpdate = Message<'bigfleet.v1alpha1.AvailableCapacityUpdate'> & {
  /** `available:` and the fingerprint of the profile. */
  supersedesKey: string;
  requirements: NodeSelectorRequirement[];
  resources?: Resources;
  availableCount: number;
  confidence: AvailableCapacityUpdate_Confidence;
  /** US dollars. */
  costPerHour: number;
};
export const AvailableCapacityUpdateSchema: GenMessage<AvailableCapacityUpdate> = messageDesc(file, 10);

export const Shard: GenService<{
  /** The first message of the operator is a Hello. */
  session: { methodKind: 'bidi_streaming'; input: typeof OperatorMessageSchema; output: typeof ShardMessageSchema };
}> = serviceDesc(file, 0);
