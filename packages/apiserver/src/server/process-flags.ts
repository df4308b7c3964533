/** Flags of kube-apiserver that hold for the whole process, wherever they are looked at. */
import { applyPrivilegedPods } from '@megaplane/machinery/validation-security';
import { applyAccountLookup } from '../authentication/account-tokens.ts';
import { applyMinRequestTimeout } from '../handlers/watching.ts';

/** As given on the command line; what is not given stays as it is. */
export interface ProcessFlags {
  /** Seconds; 0: watches do not end by themselves. */
  readonly minRequestTimeout?: number;
  readonly allowPrivileged?: boolean;
  /** Whether tokens that Secrets hold end with their Secret. */
  readonly serviceAccountLookup?: boolean;
}

/** Applies them, once, before the server starts. */
export function applyProcessFlags(flags: ProcessFlags): void {
  const { minRequestTimeout, allowPrivileged, serviceAccountLookup } = flags;
  if (minRequestTimeout !== undefined) applyMinRequestTimeout(minRequestTimeout);
  if (allowPrivileged !== undefined) applyPrivilegedPods(allowPrivileged);
  if (serviceAccountLookup !== undefined) applyAccountLookup(serviceAccountLookup);
}
