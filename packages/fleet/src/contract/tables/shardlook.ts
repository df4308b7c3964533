// Written by packages/fleet/tools/generate.ts from megaplane/fleet/v1alpha1/shardlook.proto.
import type { Message } from '@bufbuild/protobuf';
import { fileDesc, messageDesc, serviceDesc } from '@bufbuild/protobuf/codegenv2';
import type { GenFile, GenMessage, GenService } from '@bufbuild/protobuf/codegenv2';
import type { CapacityType, MachineState } from './provider.ts';
import { file as providerFile } from './provider.ts';
import type { Shortfall } from './coordinator.ts';
import { file as coordinatorFile } from './coordinator.ts';
import type { ClusterCapacityNeeds } from './capacity.ts';
import { file as capacityFile } from './capacity.ts';
import type { InspectNeedsResponse } from './shardread.ts';
import { file as shardreadFile } from './shardread.ts';

export const file: GenFile = fileDesc(
  'CihtZWdhcGxhbmUvZmxlZXQvdjFhbHBoYTEvc2hhcmRsb29rLnByb3RvEhhtZWdhcGxhbmUuZmxlZXQudjFhbHBoYTEi' +
  'aQoTTGlzdE1hY2hpbmVzUmVxdWVzdBISCgpjbHVzdGVyX2lkGAEgASgJEi8KBnN0YXRlcxgCIAMoDjIfLmJpZ2ZsZWV0' +
  'LnYxYWxwaGExLk1hY2hpbmVTdGF0ZRINCgVsaW1pdBgDIAEoBSKiAwoLTWFjaGluZUxvb2sSCgoCaWQYASABKAkSLgoF' +
  'c3RhdGUYAiABKA4yHy5iaWdmbGVldC52MWFscGhhMS5NYWNoaW5lU3RhdGUSDwoHY2x1c3RlchgDIAEoCRIVCg1pbnN0' +
  'YW5jZV90eXBlGAQgASgJEgwKBHpvbmUYBSABKAkSNgoNY2FwYWNpdHlfdHlwZRgGIAEoDjIfLmJpZ2ZsZWV0LnYxYWxw' +
  'aGExLkNhcGFjaXR5VHlwZRIWCg5wcmljZV9wZXJfaG91chgHIAEoARJLCgthbGxvY2F0YWJsZRgIIAMoCzI2Lm1lZ2Fw' +
  'bGFuZS5mbGVldC52MWFscGhhMS5NYWNoaW5lTG9vay5BbGxvY2F0YWJsZUVudHJ5EhkKEWFzc2lnbmVkX3ByaW9yaXR5' +
  'GAkgASgFEhgKEG5lZWRfZmluZ2VycHJpbnQYCiABKAkSDQoFZ3JvdXAYCyABKAkSDAoEYnVzeRgMIAEoCBoyChBBbGxv' +
  'Y2F0YWJsZUVudHJ5EgsKA2tleRgBIAEoCRINCgV2YWx1ZRgCIAEoCToCOAEiFwoVTGlzdFNob3J0ZmFsbHNSZXF1ZXN0' +
  'IlkKFkxpc3RTaG9ydGZhbGxzUmVzcG9uc2USDQoFY3ljbGUYASABKAMSMAoKc2hvcnRmYWxscxgCIAMoCzIcLmJpZ2Zs' +
  'ZWV0LnYxYWxwaGExLlNob3J0ZmFsbCJICg1XaGF0SWZSZXF1ZXN0EjcKBnJvbGx1cBgBIAEoCzInLmJpZ2ZsZWV0LnYx' +
  'YWxwaGExLkNsdXN0ZXJDYXBhY2l0eU5lZWRzIokBCg5XaGF0SWZSZXNwb25zZRI2CgNyb3cYASABKAsyJy5iaWdmbGVl' +
  'dC52MWFscGhhMS5JbnNwZWN0TmVlZHNSZXNwb25zZUgAEjYKBmFjdGlvbhgCIAEoCzIkLm1lZ2FwbGFuZS5mbGVldC52' +
  'MWFscGhhMS5BY3Rpb25Mb29rSABCBwoFZnJhbWUiVgoKQWN0aW9uTG9vaxIMCgRraW5kGAEgASgJEhIKCm1hY2hpbmVf' +
  'aWQYAiABKAkSDwoHY2x1c3RlchgDIAEoCRIVCg1ncmFjZV9zZWNvbmRzGAQgASgDMs8CCglTaGFyZExvb2sSaAoMTGlz' +
  'dE1hY2hpbmVzEi0ubWVnYXBsYW5lLmZsZWV0LnYxYWxwaGExLkxpc3RNYWNoaW5lc1JlcXVlc3QaJS5tZWdhcGxhbmUu' +
  'ZmxlZXQudjFhbHBoYTEuTWFjaGluZUxvb2soADABEncKDkxpc3RTaG9ydGZhbGxzEi8ubWVnYXBsYW5lLmZsZWV0LnYx' +
  'YWxwaGExLkxpc3RTaG9ydGZhbGxzUmVxdWVzdBowLm1lZ2FwbGFuZS5mbGVldC52MWFscGhhMS5MaXN0U2hvcnRmYWxs' +
  'c1Jlc3BvbnNlKAAwABJfCgZXaGF0SWYSJy5tZWdhcGxhbmUuZmxlZXQudjFhbHBoYTEuV2hhdElmUmVxdWVzdBooLm1l' +
  'Z2FwbGFuZS5mbGVldC52MWFscGhhMS5XaGF0SWZSZXNwb25zZSgAMAFiBnByb3RvMw',
  [capacityFile, coordinatorFile, providerFile, shardreadFile],
);

export type ListMachinesRequest = Message<'megaplane.fleet.v1alpha1.ListMachinesRequest'> & {
  /** Empty: of all clusters, and of none. */
  clusterId: string;
  /** Empty: in any state. */
  states: MachineState[];
  /** 0: all. */
  limit: number;
};
export const ListMachinesRequestSchema: GenMessage<ListMachinesRequest> = messageDesc(file, 0);

export type MachineLook = Message<'megaplane.fleet.v1alpha1.MachineLook'> & {
  id: string;
  state: MachineState;
  cluster: string;
  instanceType: string;
  zone: string;
  capacityType: CapacityType;
  pricePerHour: number;
  allocatable: { [key: string]: string };
  assignedPriority: number;
  needFingerprint: string;
  group: string;
  /** An action is under way. */
  busy: boolean;
};
export const MachineLookSchema: GenMessage<MachineLook> = messageDesc(file, 1);

export type ListShortfallsRequest = Message<'megaplane.fleet.v1alpha1.ListShortfallsRequest'>;
export const ListShortfallsRequestSchema: GenMessage<ListShortfallsRequest> = messageDesc(file, 2);

export type ListShortfallsResponse = Message<'megaplane.fleet.v1alpha1.ListShortfallsResponse'> & {
  cycle: bigint;
  shortfalls: Shortfall[];
};
export const ListShortfallsResponseSchema: GenMessage<ListShortfallsResponse> = messageDesc(file, 3);

export type WhatIfRequest = Message<'megaplane.fleet.v1alpha1.WhatIfRequest'> & {
  rollup?: ClusterCapacityNeeds;
};
export const WhatIfRequestSchema: GenMessage<WhatIfRequest> = messageDesc(file, 4);

export type WhatIfResponse = Message<'megaplane.fleet.v1alpha1.WhatIfResponse'> & {
  frame:
    | { case: 'row'; value: InspectNeedsResponse }
    | { case: 'action'; value: ActionLook }
    | { case: undefined; value?: undefined };
};
export const WhatIfResponseSchema: GenMessage<WhatIfResponse> = messageDesc(file, 5);

export type ActionLook = Message<'megaplane.fleet.v1alpha1.ActionLook'> & {
  /** Bootstrap, Provision, Preempt, Reclaim or Delete. */
  kind: string;
  machineId: string;
  cluster: string;
  graceSeconds: bigint;
};
export const ActionLookSchema: GenMessage<ActionLook> = messageDesc(file, 6);

export const ShardLook: GenService<{
  /** By id. */
  listMachines: { methodKind: 'server_streaming'; input: typeof ListMachinesRequestSchema; output: typeof MachineLookSchema };
  /** Of the last cycle, the most important first. */
  listShortfalls: { methodKind: 'unary'; input: typeof ListShortfallsRequestSchema; output: typeof ListShortfallsResponseSchema };
  /** One cycle from nothing on a copy of what is known, with one roll-up in the place of the cluster's own. Rows first, then actions. */
  whatIf: { methodKind: 'server_streaming'; input: typeof WhatIfRequestSchema; output: typeof WhatIfResponseSchema };
}> = serviceDesc(file, 0);
