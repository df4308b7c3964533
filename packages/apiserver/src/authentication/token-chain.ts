/**
 * Whom bearer tokens stand for: the readers are tried in their order, service accounts among them.
 * Tokens of service accounts are for certain audiences; all others are for this server.
 */
import { isUnknown, type TokenReader, type Unknown } from './authentication.ts';
import type { TokenSigner } from './token-signer.ts';
import type { World } from '../lister/world.ts';
import { whyNoAccount, type AccountToken } from './account-tokens.ts';
import { AccountTokenCounts } from './account-token-counts.ts';
import { KnownAccounts } from './known-accounts.ts';

export class TokenChain {
  readonly #world: World;
  readonly #signer: TokenSigner | null;
  readonly #accounts: KnownAccounts | null;
  readonly #readers: readonly TokenReader[];
  readonly counts: AccountTokenCounts = new AccountTokenCounts();

  constructor(world: World, signer: TokenSigner | null, readers: readonly TokenReader[]) {
    this.#world = world;
    this.#signer = signer;
    this.#accounts = signer === null ? null : new KnownAccounts(world, signer, this.counts);
    this.#readers = readers;
  }

  /** For requests to this server. */
  readonly read: TokenReader = (token) => {
    const found = this.review(token, []);
    return found === null || isUnknown(found) ? found : found.identity;
  };

  /**
   * Whom a token stands for and which of these audiences it is for, at least one; without any
   * audiences it must be for this server.
   */
  readonly review = (
    token: string,
    audiences: readonly string[],
  ): AccountToken | Unknown | null => {
    const own = this.#signer?.audiences ?? [];
    const asked = audiences.length > 0 ? audiences : own;
    const account = this.#account(token, asked);
    if (account !== null) return account;
    const shared = asked.filter((one) => own.includes(one));
    if (shared.length === 0 && asked.length > 0) return null;
    for (const read of this.#readers) {
      const found = read(token);
      if (found === null) continue;
      return isUnknown(found) ? found : { identity: found, audiences: shared };
    }
    return null;
  };

  /** Why a token stands for nobody, as upstream tells in reviews. */
  readonly whyNobody = (token: string, audiences: readonly string[]): string => {
    const signer = this.#signer;
    if (signer === null) return 'invalid bearer token';
    const asked = audiences.length > 0 ? audiences : signer.audiences;
    return whyNoAccount(this.#world, signer, token, asked);
  };

  #account(token: string, asked: readonly string[]): AccountToken | null {
    const found = this.#accounts?.read(token) ?? null;
    if (found === null) return null;
    const audiences = found.audiences.filter((one) => asked.includes(one));
    return audiences.length === 0 ? null : { ...found, audiences };
  }
}
