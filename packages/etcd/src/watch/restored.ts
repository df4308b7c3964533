/**
 * A store out of an older backup whose revisions go on where the backup ended gives numbers out a
 * second time. Whoever saw the first ones watches from a revision to come, and would be told
 * nothing until it comes, and then of other changes than those it missed. etcd lets them wait; here
 * the backup leaves a mark, and such watches are refused.
 */

/** Number of the document that is the mark; its content says nothing more. */
export const RESTORED_DOCUMENT = 2;
/** A watch may be a little ahead, as of a write whose answer came by another way. */
export const FUTURE_MS_MAX = 3000;
