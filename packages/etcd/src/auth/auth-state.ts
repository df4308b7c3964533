/**
 * Users, roles and their revision: the rules of etcd's auth store, without passwords' work and
 * without tokens. Each change is one revision of this state, not of the keys.
 */
import { parseNested } from '@megaplane/base/nested-json';
import type { EtcdFailure } from '../codec/failures.ts';
import { AUTH } from './auth-failures.ts';
import { type Permission, Rights, isValidRange } from './permissions.ts';

export const ROOT = 'root';
/** The document of the store that holds all of it. */
export const AUTH_DOCUMENT = 1;

export interface User {
  readonly name: string;
  /** A bcrypt hash; empty without a password. */
  readonly hash: string;
  readonly noPassword: boolean;
  readonly roles: readonly string[];
}

/** Who asks: the user's name and the revision that the proof of it belongs to. */
export interface Identity {
  readonly name: string;
  readonly revision: number;
}

/** What the document holds. */
export interface StoredAuth {
  readonly enabled: boolean;
  readonly revision: number;
  readonly users: readonly User[];
  readonly roles: readonly {
    readonly name: string;
    readonly permissions: readonly Permission[];
  }[];
}

/** Changes return null, or why nothing was changed. */
type Refusal = EtcdFailure | null;

export class AuthState {
  enabled = false;
  /** 1 in a fresh store. */
  revision = 1;
  readonly #users: Map<string, User> = new Map();
  readonly #roles: Map<string, readonly Permission[]> = new Map();
  readonly #rights: Map<string, Rights> = new Map();
  readonly #save: (bytes: Buffer) => void;

  /** `bytes` is what `save` was last given, undefined in a fresh store. */
  constructor(bytes: Buffer | undefined, save: (bytes: Buffer) => void) {
    this.#save = save;
    this.load(bytes);
  }

  /** Takes what another member has saved. */
  load(bytes: Buffer | undefined): void {
    this.enabled = false;
    this.revision = 1;
    this.#users.clear();
    this.#roles.clear();
    this.#rights.clear();
    if (bytes === undefined) return;
    const stored = parseNested(bytes.toString('utf8')) as StoredAuth;
    this.enabled = stored.enabled;
    this.revision = stored.revision;
    for (const user of stored.users) this.#users.set(user.name, user);
    for (const { name, permissions } of stored.roles) this.#roles.set(name, permissions);
  }

  #commit(): null {
    this.revision++;
    this.#store();
    return null;
  }

  #store(): void {
    this.#rights.clear();
    const stored: StoredAuth = {
      enabled: this.enabled,
      revision: this.revision,
      users: [...this.#users.values()],
      roles: [...this.#roles].map(([name, permissions]) => ({ name, permissions })),
    };
    this.#save(Buffer.from(JSON.stringify(stored)));
  }

  /** Enabling twice changes nothing; enabling is no change of the revision. */
  enable(): Refusal {
    if (this.enabled) return null;
    const root = this.#users.get(ROOT);
    if (root === undefined) return AUTH.noRootUser;
    if (!root.roles.includes(ROOT)) return AUTH.noRootRole;
    this.enabled = true;
    this.#store();
    return null;
  }

  disable(): Refusal {
    if (!this.enabled) return null;
    this.enabled = false;
    return this.#commit();
  }

  user(name: string): User | undefined {
    return this.#users.get(name);
  }

  userNames(): readonly string[] {
    return [...this.#users.keys()].sort();
  }

  addUser(name: string, hash: string, noPassword: boolean): Refusal {
    if (name === '') return AUTH.userEmpty;
    if (this.#users.has(name)) return AUTH.userExists;
    this.#users.set(name, { name, hash, noPassword, roles: [] });
    return this.#commit();
  }

  deleteUser(name: string): Refusal {
    if (this.enabled && name === ROOT) return AUTH.invalidManagement;
    if (!this.#users.delete(name)) return AUTH.userNotFound;
    return this.#commit();
  }

  /** `hash` is null where none could be read; who has no password needs none. */
  changePassword(name: string, hash: string | null): Refusal {
    const user = this.#users.get(name);
    if (user === undefined) return AUTH.userNotFound;
    if (hash === null && !user.noPassword) return AUTH.noPasswordUser;
    this.#users.set(name, { ...user, hash: user.noPassword ? '' : (hash ?? '') });
    return this.#commit();
  }

  grantRole(name: string, role: string): Refusal {
    const user = this.#users.get(name);
    if (user === undefined) return AUTH.userNotFound;
    if (role !== ROOT && !this.#roles.has(role)) return AUTH.roleNotFound;
    if (user.roles.includes(role)) return null;
    this.#users.set(name, { ...user, roles: [...user.roles, role].sort() });
    return this.#commit();
  }

  revokeRole(name: string, role: string): Refusal {
    if (this.enabled && name === ROOT && role === ROOT) return AUTH.invalidManagement;
    const user = this.#users.get(name);
    if (user === undefined) return AUTH.userNotFound;
    if (!user.roles.includes(role)) return AUTH.roleNotGranted;
    this.#users.set(name, { ...user, roles: user.roles.filter((one) => one !== role) });
    return this.#commit();
  }

  role(name: string): readonly Permission[] | undefined {
    return this.#roles.get(name);
  }

  roleNames(): readonly string[] {
    return [...this.#roles.keys()].sort();
  }

  addRole(name: string): Refusal {
    if (name === '') return AUTH.roleEmpty;
    if (this.#roles.has(name)) return AUTH.roleExists;
    this.#roles.set(name, []);
    return this.#commit();
  }

  deleteRole(name: string): Refusal {
    if (this.enabled && name === ROOT) return AUTH.invalidManagement;
    if (!this.#roles.delete(name)) return AUTH.roleNotFound;
    for (const user of this.#users.values()) {
      if (!user.roles.includes(name)) continue;
      this.#users.set(user.name, { ...user, roles: user.roles.filter((one) => one !== name) });
    }
    return this.#commit();
  }

  grantPermission(name: string, given: Permission | null): Refusal {
    if (given === null) return AUTH.permissionNotGiven;
    if (!isValidRange(given.key, given.rangeEnd)) return AUTH.invalidManagement;
    const permissions = this.#roles.get(name);
    if (permissions === undefined) return AUTH.roleNotFound;
    const others = permissions.filter((one) => !isSameRange(one, given));
    const all = [...others, given].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    this.#roles.set(name, all);
    return this.#commit();
  }

  revokePermission(name: string, range: Pick<Permission, 'key' | 'rangeEnd'>): Refusal {
    const permissions = this.#roles.get(name);
    if (permissions === undefined) return AUTH.roleNotFound;
    const others = permissions.filter((one) => !isSameRange(one, range));
    if (others.length === permissions.length) return AUTH.permissionNotGranted;
    this.#roles.set(name, others);
    return this.#commit();
  }

  /** May `identity` (null: nobody is known) do this to the range? Null when it may. */
  permits(identity: Identity | null, kind: number, key: string, rangeEnd: string): Refusal {
    if (identity === null) return AUTH.userEmpty;
    if (identity.revision < this.revision) return AUTH.oldRevision;
    const user = this.#users.get(identity.name);
    if (user === undefined) return AUTH.permissionDenied;
    if (user.roles.includes(ROOT)) return null;
    return this.#rightsOf(user).allows(kind, key, rangeEnd) ? null : AUTH.permissionDenied;
  }

  /** May it do what only root may? */
  permitsAll(identity: Identity | null): Refusal {
    if (identity === null || identity.name === '') return AUTH.userEmpty;
    const user = this.#users.get(identity.name);
    if (user === undefined) return AUTH.userNotFound;
    return user.roles.includes(ROOT) ? null : AUTH.permissionDenied;
  }

  #rightsOf(user: User): Rights {
    const known = this.#rights.get(user.name);
    if (known !== undefined) return known;
    const rights = new Rights(user.roles.flatMap((role) => this.#roles.get(role) ?? []));
    this.#rights.set(user.name, rights);
    return rights;
  }

  hasRole(name: string, role: string): boolean {
    return this.#users.get(name)?.roles.includes(role) === true;
  }
}

function isSameRange(
  a: Pick<Permission, 'key' | 'rangeEnd'>,
  b: Pick<Permission, 'key' | 'rangeEnd'>,
): boolean {
  return a.key === b.key && a.rangeEnd === b.rangeEnd;
}
