/** Who writes what, where and how: the part of a write's shape that is not in its texts. */
import type { Call } from '../request/call.ts';
import { isNode } from '../authorization/node-identity.ts';
import { identityOf, type Identity } from '../request/identity.ts';
import { queryStart } from '../request/request-info.ts';
import type { Served } from '../storage/served.ts';

/** What decides the result beside the texts: who writes what kind, where, and how. */
interface Context {
  readonly identity: Identity;
  readonly served: Served;
  readonly method: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly query: string;
  readonly contentType: string;
  readonly userAgent: string;
  readonly text: string;
}

/** Contexts that come again and again, and their texts. */
const CONTEXTS_MAX = 16;
const contexts: Context[] = [];
const NODE_PREFIX = 'system:node:';
let nextContext = 0;

/** Stands for each node: what they may repeat is of their own (see `own-status.ts`). */
const NODE_ITSELF = identityOf(`${NODE_PREFIX}itself`, []);

function actorOf(identity: Identity): Identity {
  return isNode(identity) ? NODE_ITSELF : identity;
}

/** Who rehearses what `identity` does to the object `name`. */
export function rehearser(identity: Identity, served: Served, name: string): Identity {
  const isOfNode = isNode(identity) && served.resource.storage.name === 'nodes';
  return isOfNode ? { ...identity, user: `${NODE_PREFIX}${name}` } : identity;
}

/** The same text for the same context, without making it anew each time. */
export function contextText(call: Call, served: Served): string {
  const { exchange, info } = call;
  const identity = actorOf(call.identity);
  const { path, method } = exchange;
  const { subresource, namespace } = info;
  const query = path.slice(queryStart(path));
  const contentType = exchange.header('content-type') ?? '';
  const userAgent = exchange.header('user-agent') ?? '';
  for (const one of contexts) {
    const isSame =
      one.identity === identity &&
      one.served === served &&
      one.method === method &&
      one.subresource === subresource &&
      one.namespace === namespace &&
      one.query === query &&
      one.contentType === contentType &&
      one.userAgent === userAgent;
    if (isSame) return one.text;
  }
  const { resource, plural } = served;
  const text = JSON.stringify([
    ...[method, resource.apiVersion, plural.name, subresource, namespace, query],
    ...[contentType, userAgent, identityText(identity)],
  ]);
  const about = { method, subresource, namespace, query, contentType, userAgent };
  contexts[nextContext++ % CONTEXTS_MAX] = { identity, served, ...about, text };
  return text;
}

const identityTexts = new WeakMap<Identity, string>();

function identityText(identity: Identity): string {
  let text = identityTexts.get(identity);
  if (text === undefined) identityTexts.set(identity, (text = JSON.stringify(identity)));
  return text;
}
