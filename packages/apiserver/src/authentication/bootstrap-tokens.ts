/**
 * Bootstrap tokens: `abcdef.0123456789abcdef`, kept in Secrets of kube-system, with which machines
 * join a cluster before they have a certificate.
 */
import { timingSafeEqual } from 'node:crypto';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { readStoredObject } from '../lister/stored-object.ts';
import type { TokenReader } from './authentication.ts';
import { identityOf } from '../request/identity.ts';
import type { World } from '../lister/world.ts';

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const TYPE = 'bootstrap.kubernetes.io/token';
const GROUP = 'system:bootstrappers';
const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

/** Reads them from the Secrets of a cluster. */
export function bootstrapTokens(world: World): TokenReader {
  return (token) => {
    const [, id, secret] = TOKEN.exec(token) ?? [];
    if (id === undefined || secret === undefined) return null;
    const found = readStoredObject(world, '', 'secrets', 'kube-system', `bootstrap-token-${id}`);
    if (found === null || stringAt(found, 'metadata', 'deletionTimestamp') !== '') return null;
    if (stringAt(found, 'type') !== TYPE) return null;
    const data = objectAt(found, 'data') ?? {};
    if (textOf(data, 'token-id') !== id || !isEqual(textOf(data, 'token-secret'), secret)) {
      return null;
    }
    if (textOf(data, 'usage-bootstrap-authentication') !== 'true') return null;
    if (!isValidStill(textOf(data, 'expiration'), world.edge.nowMs())) return null;
    const groups = groupsOf(textOf(data, 'auth-extra-groups'));
    return groups === null ? null : identityOf(`system:bootstrap:${id}`, groups);
  };
}

function textOf(data: JsonObject, name: string): string {
  return Buffer.from(stringAt(data, name), 'base64').toString('utf8');
}

function isEqual(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A time that nobody can read ends the token: it was meant to end. */
function isValidStill(expiration: string, nowMs: number): boolean {
  return expiration === '' || Date.parse(expiration) > nowMs;
}

/** Null where a group may not be given this way. */
function groupsOf(text: string): string[] | null {
  const extra = text.split(',').filter((name) => name !== '');
  return extra.every((name) => EXTRA_GROUP.test(name)) ? [GROUP, ...extra] : null;
}
