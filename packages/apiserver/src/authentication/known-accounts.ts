/**
 * Tokens of service accounts that were read before. Reading one verifies a signature (30 to 70
 * microseconds) and decodes the account and what the token is bound to; as long as those have not
 * changed and its time is not over, it stands for the same, and for the very same identity, by
 * which others remember what they found out.
 */
import { isAsSeen, type Seen } from '../lister/stored-object.ts';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { TokenSigner } from './token-signer.ts';
import type { World } from '../lister/world.ts';
import { timeFault } from './account-claims.ts';
import type { AccountTokenCounts, TokenUse } from './account-token-counts.ts';
import { readAccountToken, secretKindOf, type AccountToken } from './account-tokens.ts';

/** Above it the one that was read first is forgotten. */
const ACCOUNTS_MAX = 1024;

interface Known {
  readonly account: AccountToken;
  readonly claims: JsonObject;
  readonly seen: readonly Seen[];
  readonly untilMs: number;
}

export class KnownAccounts {
  readonly #world: World;
  readonly #signer: TokenSigner;
  readonly #counts: AccountTokenCounts;
  /** By the whole text of the token. */
  readonly #known = new Map<string, Known>();

  constructor(world: World, signer: TokenSigner, counts: AccountTokenCounts) {
    this.#world = world;
    this.#counts = counts;
    this.#signer = signer;
  }

  /** Whom a token stands for; null for any other text. */
  read(token: string): AccountToken | null {
    const known = this.#known.get(token);
    if (known !== undefined) {
      const nowMs = this.#world.edge.nowMs();
      const isFresh = timeFault(known.claims, nowMs) === '' && nowMs <= known.untilMs;
      if (isFresh && isAsSeen(this.#world, known.seen)) {
        this.#counts.hit();
        this.#counts.used(useOf(known.account, nowMs));
        return known.account;
      }
      this.#known.delete(token);
    }
    const found = readAccountToken(this.#world, this.#signer, token);
    if (found === 'foreign') return null;
    if (found === 'refused') {
      this.#counts.missed('error');
      return null;
    }
    const { account, claims, seen, untilMs } = found;
    this.#counts.missed('ok');
    this.#counts.used(useOf(account, this.#world.edge.nowMs()));
    if (seen !== null) this.#keep(token, { account, claims, seen, untilMs });
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

function useOf({ identity }: AccountToken, nowMs: number): TokenUse {
  const notes = identity.notes ?? null;
  if (notes === null) return 'valid';
  if (notes.staleFromMs > 0) return nowMs > notes.staleFromMs ? 'stale' : 'valid';
  return secretKindOf(notes);
}
