/** Paths within volumes. */
import { invalidValue } from '../../meta/fielderrors.ts';
import type { Findings } from './validation-rules.ts';

/** A path below a volume: relative, and never up. */
export function checkDescendingPath(found: Findings, path: string, value: string): void {
  if (value.startsWith('/')) found.push(invalidValue(path, value, 'must be a relative path'));
  checkBacksteps(found, path, value);
}

/** A file below a volume: not among those that kubelets keep for themselves, `..data`. */
export function checkLocalPath(found: Findings, path: string, value: string): void {
  checkDescendingPath(found, path, value);
  if (!value.startsWith('..') || value.startsWith('../')) return;
  found.push(invalidValue(path, value, "must not start with '..'"));
}

/** A path that may not lead up. */
export function checkBacksteps(found: Findings, path: string, value: string): void {
  if (!value.split('/').includes('..')) return;
  found.push(invalidValue(path, value, "must not contain '..'"));
}
