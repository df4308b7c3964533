/** How many volumes of each driver a node takes, and those attached to it. */
import type { KubeObject } from '../api/objects.ts';

export interface CsiNodeObject extends KubeObject {
  readonly spec?: {
    readonly drivers?: readonly {
      readonly name: string;
      readonly allocatable?: { readonly count?: number };
    }[];
  };
}

export interface AttachmentObject extends KubeObject {
  readonly spec?: {
    readonly attacher?: string;
    readonly nodeName?: string;
    readonly source?: { readonly persistentVolumeName?: string };
  };
}

export function limitsOf(csiNode: CsiNodeObject | undefined): Map<string, number> {
  const limits = new Map<string, number>();
  for (const { name, allocatable } of csiNode?.spec?.drivers ?? []) {
    if (allocatable?.count !== undefined) limits.set(name, allocatable.count);
  }
  return limits;
}
