// Written by packages/fleet/tools/generate.ts from bigfleet/v1alpha1/coordinator.proto.
import type { Message } from '@bufbuild/protobuf';
import { enumDesc, fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenEnum, GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { NodeSelectorRequirement, PenaltyBucket } from './capacity.ts';
import { file as capacityFile } from './capacity.ts';
import type { Resources } from './provider.ts';
import { file as providerFile } from './provider.ts';

export const file: GenFile = fileDesc(
  'CiNiaWdmbGVldC92MWFscGhhMS9jb29yZGluYXRvci5wcm90bxIRYmlnZmxlZXQudjFhbHBoYTEilgIKC1NoYXJkUmVw' +
  'b3J0EhAKCHNoYXJkX2lkGAEgASgJEg0KBWN5Y2xlGAIgASgDEhwKFHRpbWVzdGFtcF91bml4X25hbm9zGAMgASgDEhMK' +
  'C3NoYXJkX2Vwb2NoGAQgASgDEjAKB3N1bW1hcnkYBSABKAsyHy5iaWdmbGVldC52MWFscGhhMS5TaGFyZFN1bW1hcnkS' +
  'MAoKc2hvcnRmYWxscxgGIAMoCzIcLmJpZ2ZsZWV0LnYxYWxwaGExLlNob3J0ZmFsbBI4ChBpbnN0cnVjdGlvbl9hY2tz' +
  'GAcgAygLMh4uYmlnZmxlZXQudjFhbHBoYTEuSW5zdHJ1Y3RBY2sSFQoNc2hhcmRfYWRkcmVzcxgIIAEoCSLoAgoMU2hh' +
  'cmRTdW1tYXJ5EhYKDnRvdGFsX21hY2hpbmVzGAEgASgFEhUKDWZyZWVfbWFjaGluZXMYAiABKAUSXAoYcGVyX2luc3Rh' +
  'bmNlX3R5cGVfY291bnRzGAMgAygLMjouYmlnZmxlZXQudjFhbHBoYTEuU2hhcmRTdW1tYXJ5LlBlckluc3RhbmNlVHlw' +
  'ZUNvdW50c0VudHJ5EksKD3Blcl96b25lX2NvdW50cxgEIAMoCzIyLmJpZ2ZsZWV0LnYxYWxwaGExLlNoYXJkU3VtbWFy' +
  'eS5QZXJab25lQ291bnRzRW50cnkaPAoaUGVySW5zdGFuY2VUeXBlQ291bnRzRW50cnkSCwoDa2V5GAEgASgJEg0KBXZh' +
  'bHVlGAIgASgFOgI4ARo0ChJQZXJab25lQ291bnRzRW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVlGAIgASgFOgI4AUoE' +
  'CAUQBkoECAYQByLvAQoJU2hvcnRmYWxsEkAKDHJlcXVpcmVtZW50cxgBIAMoCzIqLmJpZ2ZsZWV0LnYxYWxwaGExLk5v' +
  'ZGVTZWxlY3RvclJlcXVpcmVtZW50Ei0KB2RlZmljaXQYAiABKAsyHC5iaWdmbGVldC52MWFscGhhMS5SZXNvdXJjZXMS' +
  'EAoIcHJpb3JpdHkYAyABKAUSEgoKYWdlX2N5Y2xlcxgFIAEoBRJFChtpbnRlcnJ1cHRpb25fcGVuYWx0eV9idWNrZXQY' +
  'BiABKA4yIC5iaWdmbGVldC52MWFscGhhMS5QZW5hbHR5QnVja2V0SgQIBBAFInwKCVJlcG9ydEFjaxIYChBjb29yZGlu' +
  'YXRvcl90ZXJtGAEgASgDEhQKDGFja25vd2xlZGdlZBgCIAEoCBI/CgxpbnN0cnVjdGlvbnMYAyADKAsyKS5iaWdmbGVl' +
  'dC52MWFscGhhMS5Db29yZGluYXRvckluc3RydWN0aW9uIrMDChZDb29yZGluYXRvckluc3RydWN0aW9uEhgKEGNvb3Jk' +
  'aW5hdG9yX3Rlcm0YASABKAMSFwoPc2VxdWVuY2VfbnVtYmVyGAIgASgDEhYKDmluc3RydWN0aW9uX2lkGAMgASgJEjgK' +
  'DWFzc2lnbl9kb21haW4YBCABKAsyHy5iaWdmbGVldC52MWFscGhhMS5Bc3NpZ25Eb21haW5IABI8Cg91bmFzc2lnbl9k' +
  'b21haW4YBSABKAsyIS5iaWdmbGVldC52MWFscGhhMS5VbmFzc2lnbkRvbWFpbkgAEkYKFHJlYXNzaWduX3NwZWN1bGF0' +
  'aXZlGAYgASgLMiYuYmlnZmxlZXQudjFhbHBoYTEuUmVhc3NpZ25TcGVjdWxhdGl2ZUgAEj8KEWNyb3NzX3NoYXJkX2Ry' +
  'YWluGAcgASgLMiIuYmlnZmxlZXQudjFhbHBoYTEuQ3Jvc3NTaGFyZERyYWluSAASQgoSdHJhbnNmZXJfb3duZXJzaGlw' +
  'GAggASgLMiQuYmlnZmxlZXQudjFhbHBoYTEuVHJhbnNmZXJPd25lcnNoaXBIAEIJCgdwYXlsb2FkIjwKDEFzc2lnbkRv' +
  'bWFpbhIUCgx0b3BvbG9neV9rZXkYASABKAkSFgoOdG9wb2xvZ3lfdmFsdWUYAiABKAkiPgoOVW5hc3NpZ25Eb21haW4S' +
  'FAoMdG9wb2xvZ3lfa2V5GAEgASgJEhYKDnRvcG9sb2d5X3ZhbHVlGAIgASgJIioKE1JlYXNzaWduU3BlY3VsYXRpdmUS' +
  'EwoLbWFjaGluZV9pZHMYASADKAkiQgoPQ3Jvc3NTaGFyZERyYWluEhMKC21hY2hpbmVfaWRzGAEgAygJEhoKEnByZWVt' +
  'cHRvcl9wcmlvcml0eRgCIAEoBSJUChFUcmFuc2Zlck93bmVyc2hpcBITCgttYWNoaW5lX2lkcxgBIAMoCRIVCg1mcm9t' +
  'X3NoYXJkX2lkGAIgASgJEhMKC3RvX3NoYXJkX2lkGAMgASgJIvcBCgtJbnN0cnVjdEFjaxIWCg5pbnN0cnVjdGlvbl9p' +
  'ZBgBIAEoCRI3CgdvdXRjb21lGAIgASgOMiYuYmlnZmxlZXQudjFhbHBoYTEuSW5zdHJ1Y3RBY2suT3V0Y29tZRIOCgZy' +
  'ZWFzb24YAyABKAkihgEKB091dGNvbWUSFwoTT1VUQ09NRV9VTlNQRUNJRklFRBAAEhQKEE9VVENPTUVfQUNDRVBURUQQ' +
  'ARIaChZPVVRDT01FX1JFSkVDVEVEX1NUQUxFEAISHAoYT1VUQ09NRV9SRUpFQ1RFRF9JTlZBTElEEAMSEgoOT1VUQ09N' +
  'RV9GQUlMRUQQBCJVChNBc3NpZ25Eb21haW5SZXF1ZXN0EhQKDHRvcG9sb2d5X2tleRgBIAEoCRIWCg50b3BvbG9neV92' +
  'YWx1ZRgCIAEoCRIQCghzaGFyZF9pZBgDIAEoCSIWChRBc3NpZ25Eb21haW5SZXNwb25zZSJFChVVbmFzc2lnbkRvbWFp' +
  'blJlcXVlc3QSFAoMdG9wb2xvZ3lfa2V5GAEgASgJEhYKDnRvcG9sb2d5X3ZhbHVlGAIgASgJIhgKFlVuYXNzaWduRG9t' +
  'YWluUmVzcG9uc2UiJgoSUmVtb3ZlU2hhcmRSZXF1ZXN0EhAKCHNoYXJkX2lkGAEgASgJIhUKE1JlbW92ZVNoYXJkUmVz' +
  'cG9uc2UiEwoRTGlzdFNoYXJkc1JlcXVlc3QiSwoSTGlzdFNoYXJkc1Jlc3BvbnNlEjUKBnNoYXJkcxgBIAMoCzIlLmJp' +
  'Z2ZsZWV0LnYxYWxwaGExLlNoYXJkUmVnaXN0cnlFbnRyeSJ2ChJTaGFyZFJlZ2lzdHJ5RW50cnkSEAoIc2hhcmRfaWQY' +
  'ASABKAkSDwoHYWRkcmVzcxgCIAEoCRIdChVyZWdpc3RlcmVkX2F0X3VuaXhfbnMYAyABKAMSHgoWbGFzdF9oZWFydGJl' +
  'YXRfdW5peF9ucxgEIAEoAyIeChxMaXN0RG9tYWluQXNzaWdubWVudHNSZXF1ZXN0IlkKHUxpc3REb21haW5Bc3NpZ25t' +
  'ZW50c1Jlc3BvbnNlEjgKC2Fzc2lnbm1lbnRzGAEgAygLMiMuYmlnZmxlZXQudjFhbHBoYTEuRG9tYWluQXNzaWdubWVu' +
  'dCJSChBEb21haW5Bc3NpZ25tZW50EhQKDHRvcG9sb2d5X2tleRgBIAEoCRIWCg50b3BvbG9neV92YWx1ZRgCIAEoCRIQ' +
  'CghzaGFyZF9pZBgDIAEoCSITChFMaXN0UXVvdGFzUmVxdWVzdCJNChJMaXN0UXVvdGFzUmVzcG9uc2USNwoLYWxsb2Nh' +
  'dGlvbnMYASADKAsyIi5iaWdmbGVldC52MWFscGhhMS5RdW90YUFsbG9jYXRpb24iqQEKD1F1b3RhQWxsb2NhdGlvbhIQ' +
  'Cghwcm92aWRlchgBIAEoCRIOCgZyZWdpb24YAiABKAkSQwoJcGVyX3NoYXJkGAMgAygLMjAuYmlnZmxlZXQudjFhbHBo' +
  'YTEuUXVvdGFBbGxvY2F0aW9uLlBlclNoYXJkRW50cnkaLwoNUGVyU2hhcmRFbnRyeRILCgNrZXkYASABKAkSDQoFdmFs' +
  'dWUYAiABKAU6AjgBIhYKFExpc3RQcm92aWRlcnNSZXF1ZXN0IkwKFUxpc3RQcm92aWRlcnNSZXNwb25zZRIzCglwcm92' +
  'aWRlcnMYASADKAsyIC5iaWdmbGVldC52MWFscGhhMS5Qcm92aWRlckVudHJ5Ij4KDVByb3ZpZGVyRW50cnkSDAoEbmFt' +
  'ZRgBIAEoCRIPCgdhZGRyZXNzGAIgASgJEg4KBnJlZ2lvbhgDIAEoCSIrChdMaXN0U2hhcmRSZXBvcnRzUmVxdWVzdBIQ' +
  'CghzaGFyZF9pZBgBIAEoCSJTChhMaXN0U2hhcmRSZXBvcnRzUmVzcG9uc2USNwoHcmVwb3J0cxgBIAMoCzImLmJpZ2Zs' +
  'ZWV0LnYxYWxwaGExLlNoYXJkUmVwb3J0U25hcHNob3QitwEKE1NoYXJkUmVwb3J0U25hcHNob3QSEAoIc2hhcmRfaWQY' +
  'ASABKAkSDQoFY3ljbGUYAiABKAMSGwoTcmVjZWl2ZWRfYXRfdW5peF9ucxgDIAEoAxIwCgdzdW1tYXJ5GAQgASgLMh8u' +
  'YmlnZmxlZXQudjFhbHBoYTEuU2hhcmRTdW1tYXJ5EjAKCnNob3J0ZmFsbHMYBSADKAsyHC5iaWdmbGVldC52MWFscGhh' +
  'MS5TaG9ydGZhbGwiPwoWSm9pblJhZnRDbHVzdGVyUmVxdWVzdBIPCgdub2RlX2lkGAEgASgJEhQKDHJhZnRfYWRkcmVz' +
  'cxgCIAEoCSIZChdKb2luUmFmdENsdXN0ZXJSZXNwb25zZSIVChNTbmFwc2hvdFNhdmVSZXF1ZXN0IkMKEVNuYXBzaG90' +
  'U2F2ZUNodW5rEhMKCW1ldGFfanNvbhgBIAEoDEgAEg4KBGRhdGEYAiABKAxIAEIJCgdwYXlsb2FkMvcICgtDb29yZGlu' +
  'YXRvchJPCgtSZXBvcnRTaGFyZBIeLmJpZ2ZsZWV0LnYxYWxwaGExLlNoYXJkUmVwb3J0GhwuYmlnZmxlZXQudjFhbHBo' +
  'YTEuUmVwb3J0QWNrKAAwABJjCgxBc3NpZ25Eb21haW4SJi5iaWdmbGVldC52MWFscGhhMS5Bc3NpZ25Eb21haW5SZXF1' +
  'ZXN0GicuYmlnZmxlZXQudjFhbHBoYTEuQXNzaWduRG9tYWluUmVzcG9uc2UoADAAEmkKDlVuYXNzaWduRG9tYWluEigu' +
  'YmlnZmxlZXQudjFhbHBoYTEuVW5hc3NpZ25Eb21haW5SZXF1ZXN0GikuYmlnZmxlZXQudjFhbHBoYTEuVW5hc3NpZ25E' +
  'b21haW5SZXNwb25zZSgAMAASYAoLUmVtb3ZlU2hhcmQSJS5iaWdmbGVldC52MWFscGhhMS5SZW1vdmVTaGFyZFJlcXVl' +
  'c3QaJi5iaWdmbGVldC52MWFscGhhMS5SZW1vdmVTaGFyZFJlc3BvbnNlKAAwABJdCgpMaXN0U2hhcmRzEiQuYmlnZmxl' +
  'ZXQudjFhbHBoYTEuTGlzdFNoYXJkc1JlcXVlc3QaJS5iaWdmbGVldC52MWFscGhhMS5MaXN0U2hhcmRzUmVzcG9uc2Uo' +
  'ADAAEn4KFUxpc3REb21haW5Bc3NpZ25tZW50cxIvLmJpZ2ZsZWV0LnYxYWxwaGExLkxpc3REb21haW5Bc3NpZ25tZW50' +
  'c1JlcXVlc3QaMC5iaWdmbGVldC52MWFscGhhMS5MaXN0RG9tYWluQXNzaWdubWVudHNSZXNwb25zZSgAMAASXQoKTGlz' +
  'dFF1b3RhcxIkLmJpZ2ZsZWV0LnYxYWxwaGExLkxpc3RRdW90YXNSZXF1ZXN0GiUuYmlnZmxlZXQudjFhbHBoYTEuTGlz' +
  'dFF1b3Rhc1Jlc3BvbnNlKAAwABJmCg1MaXN0UHJvdmlkZXJzEicuYmlnZmxlZXQudjFhbHBoYTEuTGlzdFByb3ZpZGVy' +
  'c1JlcXVlc3QaKC5iaWdmbGVldC52MWFscGhhMS5MaXN0UHJvdmlkZXJzUmVzcG9uc2UoADAAEm8KEExpc3RTaGFyZFJl' +
  'cG9ydHMSKi5iaWdmbGVldC52MWFscGhhMS5MaXN0U2hhcmRSZXBvcnRzUmVxdWVzdBorLmJpZ2ZsZWV0LnYxYWxwaGEx' +
  'Lkxpc3RTaGFyZFJlcG9ydHNSZXNwb25zZSgAMAASbAoPSm9pblJhZnRDbHVzdGVyEikuYmlnZmxlZXQudjFhbHBoYTEu' +
  'Sm9pblJhZnRDbHVzdGVyUmVxdWVzdBoqLmJpZ2ZsZWV0LnYxYWxwaGExLkpvaW5SYWZ0Q2x1c3RlclJlc3BvbnNlKAAw' +
  'ABJgCgxTbmFwc2hvdFNhdmUSJi5iaWdmbGVldC52MWFscGhhMS5TbmFwc2hvdFNhdmVSZXF1ZXN0GiQuYmlnZmxlZXQu' +
  'djFhbHBoYTEuU25hcHNob3RTYXZlQ2h1bmsoADABYgZwcm90bzM',
  [capacityFile, providerFile],
);

export type ShardReport = Message<'bigfleet.v1alpha1.ShardReport'> & {
  shardId: string;
  cycle: bigint;
  timestampUnixNanos: bigint;
  shardEpoch: bigint;
  summary?: ShardSummary;
  /** At most 100. */
  shortfalls: Shortfall[];
  instructionAcks: InstructAck[];
  shardAddress: string;
};
export const ShardReportSchema: GenMessage<ShardReport> = messageDesc(file, 0);

export type ShardSummary = Message<'bigfleet.v1alpha1.ShardSummary'> & {
  totalMachines: number;
  /** Idle and Speculative. */
  freeMachines: number;
  perInstanceTypeCounts: { [key: string]: number };
  perZoneCounts: { [key: string]: number };
};
export const ShardSummarySchema: GenMessage<ShardSummary> = messageDesc(file, 1);

export type Shortfall = Message<'bigfleet.v1alpha1.Shortfall'> & {
  requirements: NodeSelectorRequirement[];
  deficit?: Resources;
  priority: number;
  ageCycles: number;
  interruptionPenaltyBucket: PenaltyBucket;
};
export const ShortfallSchema: GenMessage<Shortfall> = messageDesc(file, 2);

export type ReportAck = Message<'bigfleet.v1alpha1.ReportAck'> & {
  coordinatorTerm: bigint;
  acknowledged: boolean;
  instructions: CoordinatorInstruction[];
};
export const ReportAckSchema: GenMessage<ReportAck> = messageDesc(file, 3);

export type CoordinatorInstruction = Message<'bigfleet.v1alpha1.CoordinatorInstruction'> & {
  coordinatorTerm: bigint;
  sequenceNumber: bigint;
  instructionId: string;
  payload:
    | { case: 'assignDomain'; value: AssignDomain }
    | { case: 'unassignDomain'; value: UnassignDomain }
    | { case: 'reassignSpeculative'; value: ReassignSpeculative }
    | { case: 'crossShardDrain'; value: CrossShardDrain }
    | { case: 'transferOwnership'; value: TransferOwnership }
    | { case: undefined; value?: undefined };
};
export const CoordinatorInstructionSchema: GenMessage<CoordinatorInstruction> = messageDesc(file, 4);

export type AssignDomain = Message<'bigfleet.v1alpha1.AssignDomain'> & {
  topologyKey: string;
  topologyValue: string;
};
export const AssignDomainSchema: GenMessage<AssignDomain> = messageDesc(file, 5);

export type UnassignDomain = Message<'bigfleet.v1alpha1.UnassignDomain'> & {
  topologyKey: string;
  topologyValue: string;
};
export const UnassignDomainSchema: GenMessage<UnassignDomain> = messageDesc(file, 6);

export type ReassignSpeculative = Message<'bigfleet.v1alpha1.ReassignSpeculative'> & {
  machineIds: string[];
};
export const ReassignSpeculativeSchema: GenMessage<ReassignSpeculative> = messageDesc(file, 7);

export type CrossShardDrain = Message<'bigfleet.v1alpha1.CrossShardDrain'> & {
  machineIds: string[];
  preemptorPriority: number;
};
export const CrossShardDrainSchema: GenMessage<CrossShardDrain> = messageDesc(file, 8);

export type TransferOwnership = Message<'bigfleet.v1alpha1.TransferOwnership'> & {
  machineIds: string[];
  fromShardId: string;
  toShardId: string;
};
export const TransferOwnershipSchema: GenMessage<TransferOwnership> = messageDesc(file, 9);

export const InstructAck_Outcome = {
  UNSPECIFIED: 0,
  ACCEPTED: 1,
  REJECTED_STALE: 2,
  REJECTED_INVALID: 3,
  FAILED: 4,
} as const;
export type InstructAck_Outcome = (typeof InstructAck_Outcome)[keyof typeof InstructAck_Outcome];
export const InstructAck_OutcomeSchema: GenEnum<InstructAck_Outcome> = enumDesc(file, 10, 0);

export type InstructAck = Message<'bigfleet.v1alpha1.InstructAck'> & {
  instructionId: string;
  outcome: InstructAck_Outcome;
  reason: string;
};
export const InstructAckSchema: GenMessage<InstructAck> = messageDesc(file, 10);

export type AssignDomainRequest = Message<'bigfleet.v1alpha1.AssignDomainRequest'> & {
  topologyKey: string;
  topologyValue: string;
  shardId: string;
};
export const AssignDomainRequestSchema: GenMessage<AssignDomainRequest> = messageDesc(file, 11);

export type AssignDomainResponse = Message<'bigfleet.v1alpha1.AssignDomainResponse'>;
export const AssignDomainResponseSchema: GenMessage<AssignDomainResponse> = messageDesc(file, 12);

export type UnassignDomainRequest = Message<'bigfleet.v1alpha1.UnassignDomainRequest'> & {
  topologyKey: string;
  topologyValue: string;
};
export const UnassignDomainRequestSchema: GenMessage<UnassignDomainRequest> = messageDesc(file, 13);

export type UnassignDomainResponse = Message<'bigfleet.v1alpha1.UnassignDomainResponse'>;
export const UnassignDomainResponseSchema: GenMessage<UnassignDomainResponse> = messageDesc(file, 14);

export type RemoveShardRequest = Message<'bigfleet.v1alpha1.RemoveShardRequest'> & {
  shardId: string;
};
export const RemoveShardRequestSchema: GenMessage<RemoveShardRequest> = messageDesc(file, 15);

export type RemoveShardResponse = Message<'bigfleet.v1alpha1.RemoveShardResponse'>;
export const RemoveShardResponseSchema: GenMessage<RemoveShardResponse> = messageDesc(file, 16);

export type ListShardsRequest = Message<'bigfleet.v1alpha1.ListShardsRequest'>;
export const ListShardsRequestSchema: GenMessage<ListShardsRequest> = messageDesc(file, 17);

export type ListShardsResponse = Message<'bigfleet.v1alpha1.ListShardsResponse'> & {
  /** By id. */
  shards: ShardRegistryEntry[];
};
export const ListShardsResponseSchema: GenMessage<ListShardsResponse> = messageDesc(file, 18);

export type ShardRegistryEntry = Message<'bigfleet.v1alpha1.ShardRegistryEntry'> & {
  shardId: string;
  address: string;
  registeredAtUnixNs: bigint;
  lastHeartbeatUnixNs: bigint;
};
export const ShardRegistryEntrySchema: GenMessage<ShardRegistryEntry> = messageDesc(file, 19);

export type ListDomainAssignmentsRequest = Message<'bigfleet.v1alpha1.ListDomainAssignmentsRequest'>;
export const ListDomainAssignmentsRequestSchema: GenMessage<ListDomainAssignmentsRequest> = messageDesc(file, 20);

export type ListDomainAssignmentsResponse = Message<'bigfleet.v1alpha1.ListDomainAssignmentsResponse'> & {
  assignments: DomainAssignment[];
};
export const ListDomainAssignmentsResponseSchema: GenMessage<ListDomainAssignmentsResponse> = messageDesc(file, 21);

export type DomainAssignment = Message<'bigfleet.v1alpha1.DomainAssignment'> & {
  topologyKey: string;
  topologyValue: string;
  shardId: string;
};
export const DomainAssignmentSchema: GenMessage<DomainAssignment> = messageDesc(file, 22);

export type ListQuotasRequest = Message<'bigfleet.v1alpha1.ListQuotasRequest'>;
export const ListQuotasRequestSchema: GenMessage<ListQuotasRequest> = messageDesc(file, 23);

export type ListQuotasResponse = Message<'bigfleet.v1alpha1.ListQuotasResponse'> & {
  allocations: QuotaAllocation[];
};
export const ListQuotasResponseSchema: GenMessage<ListQuotasResponse> = messageDesc(file, 24);

export type QuotaAllocation = Message<'bigfleet.v1alpha1.QuotaAllocation'> & {
  provider: string;
  region: string;
  perShard: { [key: string]: number };
};
export const QuotaAllocationSchema: GenMessage<QuotaAllocation> = messageDesc(file, 25);

export type ListProvidersRequest = Message<'bigfleet.v1alpha1.ListProvidersRequest'>;
export const ListProvidersRequestSchema: GenMessage<ListProvidersRequest> = messageDesc(file, 26);

export type ListProvidersResponse = Message<'bigfleet.v1alpha1.ListProvidersResponse'> & {
  providers: ProviderEntry[];
};
export const ListProvidersResponseSchema: GenMessage<ListProvidersResponse> = messageDesc(file, 27);

export type ProviderEntry = Message<'bigfleet.v1alpha1.ProviderEntry'> & {
  name: string;
  address: string;
  region: string;
};
export const ProviderEntrySchema: GenMessage<ProviderEntry> = messageDesc(file, 28);

export type ListShardReportsRequest = Message<'bigfleet.v1alpha1.ListShardReportsRequest'> & {
  /** Empty: all shards. */
  shardId: string;
};
export const ListShardReportsRequestSchema: GenMessage<ListShardReportsRequest> = messageDesc(file, 29);

export type ListShardReportsResponse = Message<'bigfleet.v1alpha1.ListShardReportsResponse'> & {
  reports: ShardReportSnapshot[];
};
export const ListShardReportsResponseSchema: GenMessage<ListShardReportsResponse> = messageDesc(file, 30);

export type ShardReportSnapshot = Message<'bigfleet.v1alpha1.ShardReportSnapshot'> & {
  shardId: string;
  cycle: bigint;
  receivedAtUnixNs: bigint;
  summary?: ShardSummary;
  /** Without their requirements. */
  shortfalls: Shortfall[];
};
export const ShardReportSnapshotSchema: GenMessage<ShardReportSnapshot> = messageDesc(file, 31);

export type JoinRaftClusterRequest = Message<'bigfleet.v1alpha1.JoinRaftClusterRequest'> & {
  nodeId: string;
  raftAddress: string;
};
export const JoinRaftClusterRequestSchema: GenMessage<JoinRaftClusterRequest> = messageDesc(file, 32);

export type JoinRaftClusterResponse = Message<'bigfleet.v1alpha1.JoinRaftClusterResponse'>;
export const JoinRaftClusterResponseSchema: GenMessage<JoinRaftClusterResponse> = messageDesc(file, 33);

export type SnapshotSaveRequest = Message<'bigfleet.v1alpha1.SnapshotSaveRequest'>;
export const SnapshotSaveRequestSchema: GenMessage<SnapshotSaveRequest> = messageDesc(file, 34);

export type SnapshotSaveChunk = Message<'bigfleet.v1alpha1.SnapshotSaveChunk'> & {
  payload:
    /** The first chunk. */
    | { case: 'metaJson'; value: Uint8Array }
    | { case: 'data'; value: Uint8Array }
    | { case: undefined; value?: undefined };
};
export const SnapshotSaveChunkSchema: GenMessage<SnapshotSaveChunk> = messageDesc(file, 35);

export const Coordinator: GenService<{
  reportShard: { methodKind: 'unary'; input: typeof ShardReportSchema; output: typeof ReportAckSchema };
  assignDomain: { methodKind: 'unary'; input: typeof AssignDomainRequestSchema; output: typeof AssignDomainResponseSchema };
  unassignDomain: { methodKind: 'unary'; input: typeof UnassignDomainRequestSchema; output: typeof UnassignDomainResponseSchema };
  removeShard: { methodKind: 'unary'; input: typeof RemoveShardRequestSchema; output: typeof RemoveShardResponseSchema };
  listShards: { methodKind: 'unary'; input: typeof ListShardsRequestSchema; output: typeof ListShardsResponseSchema };
  listDomainAssignments: { methodKind: 'unary'; input: typeof ListDomainAssignmentsRequestSchema; output: typeof ListDomainAssignmentsResponseSchema };
  listQuotas: { methodKind: 'unary'; input: typeof ListQuotasRequestSchema; output: typeof ListQuotasResponseSchema };
  listProviders: { methodKind: 'unary'; input: typeof ListProvidersRequestSchema; output: typeof ListProvidersResponseSchema };
  listShardReports: { methodKind: 'unary'; input: typeof ListShardReportsRequestSchema; output: typeof ListShardReportsResponseSchema };
  joinRaftCluster: { methodKind: 'unary'; input: typeof JoinRaftClusterRequestSchema; output: typeof JoinRaftClusterResponseSchema };
  snapshotSave: { methodKind: 'server_streaming'; input: typeof SnapshotSaveRequestSchema; output: typeof SnapshotSaveChunkSchema };
}> = serviceDesc(file, 0);
