/** What the thread of passwords is asked, and what it answers. */

export type PasswordJob =
  | { readonly kind: 'hash'; readonly password: string; readonly salt: string }
  | { readonly kind: 'check'; readonly password: string; readonly hash: string };

/** The hash, or whether the password belongs to it. */
export type PasswordOutcome = string | boolean;
