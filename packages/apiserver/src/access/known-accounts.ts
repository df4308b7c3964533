/**
 * Tokens of service accounts that were read before. Reading one verifies a signature (30 to 70
 * microseconds) and decodes the account and what the token is bound to; as long as those have not
 * changed and its time is not over, it stands for the same, and for the very same identity, by
 * which others remember what they found out.
 */
import { isAsSeen, type Seen } from '../admission/stored-object.ts';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { readServiceAccountToken, type AccountToken } from '../service-account-tokens.ts';
import { isInTime, type TokenSigner } from '../token-signer.ts';
import type { World } from '../world.ts';

/** Above it the one that was read first is forgotten. */
const ACCOUNTS_MAX = 1024;

interface Known {
  readonly account: AccountToken;
  readonly claims: JsonObject;
  readonly seen: readonly Seen[];
}

export class KnownAccounts {
  readonly #world: World;
  readonly #signer: TokenSigner;
  /** By the whole text of the token. */
  readonly #known = new Map<string, Known>();

  constructor(world: World, signer: TokenSigner) {
    this.#world = world;
    this.#signer = signer;
  }

  /** Whom a token stands for; null for any other text. */
  read(token: string): AccountToken | null {
    const known = this.#known.get(token);
    if (known !== undefined) {
      const nowMs = this.#world.edge.nowMs();
      if (isInTime(known.claims, nowMs) && isAsSeen(this.#world, known.seen)) return known.account;
      this.#known.delete(token);
    }
    const found = readServiceAccountToken(this.#world, this.#signer, token);
    if (found === null) return null;
    const { account, claims, seen } = found;
    if (seen !== null) this.#keep(token, { account, claims, seen });
    return account;
  }

  #keep(token: string, known: Known): void {
    if (this.#known.size >= ACCOUNTS_MAX) {
      for (const first of this.#known.keys()) {
        this.#known.delete(first);
        break;
      }
    }
    this.#known.set(token, known);
  }
}
