/** What encryption at rest asks of whoever implements it. */
export interface Sealer {
  /**
   * The value as it is kept. `key` is `/registry/...`; `context` is the key as the storage has it,
   * which is bound to the value where the cipher can do so.
   */
  seal(key: string, context: Buffer, value: Buffer): Buffer;
  /**
   * The value as it was given. `isStale`: `seal` would choose another key or cipher now. Throws an
   * Error where no key opens it.
   */
  open(
    key: string,
    context: Buffer,
    value: Buffer,
  ): { readonly value: Buffer; readonly isStale: boolean };
}
