/**
 * The members of a group, as a document of the store: so all members have the same list. Members
 * put themselves on it by the leader; who is gone for good is taken off by an operator.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { createHash } from 'node:crypto';
import type { Store } from '@megaplane/store/store';
import type { MemberInfo } from '../call/router.ts';

/** Number of the document. */
const GROUP_DOCUMENT = 3;
export const MEMBERS_MAX = 64;
const NAME_BYTES_MAX = 128;
const URLS_MAX = 16;

interface Listed {
  readonly name: string;
  readonly clientUrls: readonly string[];
  /** Entries of the journal that it needs no more, having a copy of the state. */
  readonly kept?: number;
}

/** A member's id follows from its name, so that it keeps it without a disk. */
export function memberIdOf(group: Buffer, name: string): Buffer {
  const id = createHash('sha256').update(group).update(name).digest().subarray(0, 8);
  // Positive where programs read it as a number with a sign.
  id[0] = (id[0] ?? 0) & 0x7f;
  id[7] = (id[7] ?? 0) | 1;
  return id;
}

/** What a member says of itself; null where that is no such thing. */
export function readListed(text: string): Listed | null {
  try {
    const told: unknown = parseNested(text);
    if (!isListed(told)) return null;
    const { name, clientUrls, kept } = told;
    return { name, clientUrls, ...(Number.isSafeInteger(kept) ? { kept: kept as number } : {}) };
  } catch {
    return null;
  }
}

function isListed(value: unknown): value is Listed {
  if (typeof value !== 'object' || value === null) return false;
  const { name, clientUrls } = value as Partial<Listed>;
  if (typeof name !== 'string' || name === '' || name.length > NAME_BYTES_MAX) return false;
  if (!Array.isArray(clientUrls) || clientUrls.length > URLS_MAX) return false;
  return clientUrls.every((url) => typeof url === 'string' && url.length <= 1024);
}

export class GroupList {
  readonly #store: Store;
  readonly #group: () => Buffer;
  #read: Buffer | undefined;
  #members: readonly MemberInfo[] = [];

  constructor(store: Store, group: () => Buffer) {
    this.#store = store;
    this.#group = group;
  }

  get members(): readonly MemberInfo[] {
    const bytes = this.#store.documents.get(GROUP_DOCUMENT);
    if (bytes === this.#read) return this.#members;
    this.#read = bytes;
    const told = bytes === undefined ? [] : parseNested(bytes.toString('utf8'));
    const listed = Array.isArray(told) ? told.filter((one) => isListed(one)) : [];
    this.#members = listed.map(({ name, clientUrls }) => {
      return { id: memberIdOf(this.#group(), name), name, clientUrls, peerUrls: [] };
    });
    return this.#members;
  }

  has({ name, clientUrls }: Listed): boolean {
    const found = this.members.find((member) => member.name === name);
    return found !== undefined && found.clientUrls.join() === clientUrls.join();
  }

  /** At the leader only. False when there are too many. */
  add(listed: Listed): boolean {
    if (this.has(listed)) return true;
    const others = this.members.filter(({ name }) => name !== listed.name);
    if (others.length >= MEMBERS_MAX) return false;
    this.#save([...others, listed]);
    return true;
  }

  remove(id: Buffer): boolean {
    const others = this.members.filter((member) => !member.id.equals(id));
    if (others.length === this.members.length) return false;
    this.#save(others);
    return true;
  }

  #save(listed: readonly Listed[]): void {
    const rows = listed.map(({ name, clientUrls }) => ({ name, clientUrls }));
    const sorted = rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.#store.setDocument(GROUP_DOCUMENT, Buffer.from(JSON.stringify(sorted)));
  }
}
