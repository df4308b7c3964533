/** Versions of kube-scheduler whose decisions can be asked for, and where they differ. */

/** Where 1.35 and later decide differently, or where a fault of theirs is to be repeated. */
export interface Compatibility {
  /** Balanced allocation scores the change that the pod makes (1.36). */
  readonly isBalanceChangeScored: boolean;
  /** Images that pods mount as volumes are looked for on nodes (1.36). */
  readonly areImageVolumesScored: boolean;
  /** Namespace selectors that an empty label set satisfies select every namespace (fault, 1.35). */
  readonly keepsNamespaceSelector: boolean;
  /** Storage that was once built in is always left to CSI drivers (1.36). */
  readonly isMigrationAssumed: boolean;
}

export const EXACT: Compatibility = {
  isBalanceChangeScored: false,
  areImageVolumesScored: false,
  keepsNamespaceSelector: false,
  isMigrationAssumed: false,
};

export type EmulatedVersion = '1.35' | '1.36';

/** Versions of kube-scheduler whose decisions can be asked for. */
export const COMPATIBILITY: Readonly<Record<EmulatedVersion, Compatibility>> = {
  '1.35': EXACT,
  '1.36': {
    ...EXACT,
    isBalanceChangeScored: true,
    areImageVolumesScored: true,
    isMigrationAssumed: true,
  },
};
