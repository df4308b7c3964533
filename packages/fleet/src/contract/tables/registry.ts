// Written by packages/fleet/tools/generate.ts from megaplane/fleet/v1alpha1/registry.proto.
import type { Message } from '@bufbuild/protobuf';
import { fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { ProviderEntrySchema } from './coordinator.ts';
import { file as coordinatorFile } from './coordinator.ts';

export const file: GenFile = fileDesc(
  'CidtZWdhcGxhbmUvZmxlZXQvdjFhbHBoYTEvcmVnaXN0cnkucHJvdG8SGG1lZ2FwbGFuZS5mbGVldC52MWFscGhhMSI2' +
  'Cg5DbHVzdGVyQmluZGluZxISCgpjbHVzdGVyX2lkGAEgASgJEhAKCHNoYXJkX2lkGAIgASgJIhUKE0xpc3RDbHVzdGVy' +
  'c1JlcXVlc3QiUgoUTGlzdENsdXN0ZXJzUmVzcG9uc2USOgoIY2x1c3RlcnMYASADKAsyKC5tZWdhcGxhbmUuZmxlZXQu' +
  'djFhbHBoYTEuQ2x1c3RlckJpbmRpbmcivwEKD1NldFF1b3RhUmVxdWVzdBIQCghwcm92aWRlchgBIAEoCRIOCgZyZWdp' +
  'b24YAiABKAkSSgoJcGVyX3NoYXJkGAMgAygLMjcubWVnYXBsYW5lLmZsZWV0LnYxYWxwaGExLlNldFF1b3RhUmVxdWVz' +
  'dC5QZXJTaGFyZEVudHJ5Eg0KBWxpbWl0GAQgASgFGi8KDVBlclNoYXJkRW50cnkSCwoDa2V5GAEgASgJEg0KBXZhbHVl' +
  'GAIgASgFOgI4ASIlChVSZW1vdmVQcm92aWRlclJlcXVlc3QSDAoEbmFtZRgBIAEoCSINCgtSZWdpc3RyeUFjazL4BAoN' +
  'RmxlZXRSZWdpc3RyeRJiCgtCaW5kQ2x1c3RlchIoLm1lZ2FwbGFuZS5mbGVldC52MWFscGhhMS5DbHVzdGVyQmluZGlu' +
  'ZxolLm1lZ2FwbGFuZS5mbGVldC52MWFscGhhMS5SZWdpc3RyeUFjaygAMAASZAoNVW5iaW5kQ2x1c3RlchIoLm1lZ2Fw' +
  'bGFuZS5mbGVldC52MWFscGhhMS5DbHVzdGVyQmluZGluZxolLm1lZ2FwbGFuZS5mbGVldC52MWFscGhhMS5SZWdpc3Ry' +
  'eUFjaygAMAAScQoMTGlzdENsdXN0ZXJzEi0ubWVnYXBsYW5lLmZsZWV0LnYxYWxwaGExLkxpc3RDbHVzdGVyc1JlcXVl' +
  'c3QaLi5tZWdhcGxhbmUuZmxlZXQudjFhbHBoYTEuTGlzdENsdXN0ZXJzUmVzcG9uc2UoADAAEmAKCFNldFF1b3RhEiku' +
  'bWVnYXBsYW5lLmZsZWV0LnYxYWxwaGExLlNldFF1b3RhUmVxdWVzdBolLm1lZ2FwbGFuZS5mbGVldC52MWFscGhhMS5S' +
  'ZWdpc3RyeUFjaygAMAASWgoLUHV0UHJvdmlkZXISIC5iaWdmbGVldC52MWFscGhhMS5Qcm92aWRlckVudHJ5GiUubWVn' +
  'YXBsYW5lLmZsZWV0LnYxYWxwaGExLlJlZ2lzdHJ5QWNrKAAwABJsCg5SZW1vdmVQcm92aWRlchIvLm1lZ2FwbGFuZS5m' +
  'bGVldC52MWFscGhhMS5SZW1vdmVQcm92aWRlclJlcXVlc3QaJS5tZWdhcGxhbmUuZmxlZXQudjFhbHBoYTEuUmVnaXN0' +
  'cnlBY2soADAAYgZwcm90bzM',
  [coordinatorFile],
);

export type ClusterBinding = Message<'megaplane.fleet.v1alpha1.ClusterBinding'> & {
  clusterId: string;
  shardId: string;
};
export const ClusterBindingSchema: GenMessage<ClusterBinding> = messageDesc(file, 0);

export type ListClustersRequest = Message<'megaplane.fleet.v1alpha1.ListClustersRequest'>;
export const ListClustersRequestSchema: GenMessage<ListClustersRequest> = messageDesc(file, 1);

export type ListClustersResponse = Message<'megaplane.fleet.v1alpha1.ListClustersResponse'> & {
  /** By cluster. */
  clusters: ClusterBinding[];
};
export const ListClustersResponseSchema: GenMessage<ListClustersResponse> = messageDesc(file, 2);

export type SetQuotaRequest = Message<'megaplane.fleet.v1alpha1.SetQuotaRequest'> & {
  provider: string;
  region: string;
  perShard: { [key: string]: number };
  /** Of all slices together; a larger sum is refused. 0: no limit. */
  limit: number;
};
export const SetQuotaRequestSchema: GenMessage<SetQuotaRequest> = messageDesc(file, 3);

export type RemoveProviderRequest = Message<'megaplane.fleet.v1alpha1.RemoveProviderRequest'> & {
  name: string;
};
export const RemoveProviderRequestSchema: GenMessage<RemoveProviderRequest> = messageDesc(file, 4);

export type RegistryAck = Message<'megaplane.fleet.v1alpha1.RegistryAck'>;
export const RegistryAckSchema: GenMessage<RegistryAck> = messageDesc(file, 5);

export const FleetRegistry: GenService<{
  /** To the shard that has it: nothing happens. To another: AlreadyExists. */
  bindCluster: { methodKind: 'unary'; input: typeof ClusterBindingSchema; output: typeof RegistryAckSchema };
  /** Of a cluster that is bound to none: nothing happens. */
  unbindCluster: { methodKind: 'unary'; input: typeof ClusterBindingSchema; output: typeof RegistryAckSchema };
  listClusters: { methodKind: 'unary'; input: typeof ListClustersRequestSchema; output: typeof ListClustersResponseSchema };
  /** The slices of one provider in one region, as a whole. No slices: the quota is forgotten. */
  setQuota: { methodKind: 'unary'; input: typeof SetQuotaRequestSchema; output: typeof RegistryAckSchema };
  /** Puts a provider, or takes the place of the one of this name. */
  putProvider: { methodKind: 'unary'; input: typeof ProviderEntrySchema; output: typeof RegistryAckSchema };
  removeProvider: { methodKind: 'unary'; input: typeof RemoveProviderRequestSchema; output: typeof RegistryAckSchema };
}> = serviceDesc(file, 0);
