/**
 * Who sends a body that does not come at once, before any of it is kept. Upstream looks at
 * credentials and rights before it reads a body; here most bodies come in one piece with their head
 * and cost nothing, so only those of whom the rest is awaited are asked for so early. They are
 * asked again when all is there: what is found here keeps nobody out but strangers.
 */
import { shareOfPeer } from '@megaplane/wire/body-budget';
import type { Exchange, BodyShare } from '@megaplane/wire/exchange';
import { authenticate, isUnknown } from '../authentication/authentication.ts';
import { attributesOf, denial, type Attributes } from '../authorization/authorization.ts';
import { shareOf } from '../flowcontrol/held-request.ts';
import type { Call } from '../request/call.ts';
import { ANONYMOUS, type Identity } from '../request/identity.ts';
import { parseRequest } from '../request/request-info.ts';
import { effectiveName, effectiveVerb } from '../request/request-terms.ts';
import type { ServerParts } from './server-parts.ts';

/** What the server does with those that are not let in. */
export interface EarlyAnswers {
  /** Answers a request whose sender is not to be served at all: 401. */
  refuse(exchange: Exchange, identity: Identity | null): void;
  /** Makes a call of a request, to be answered with a denial. */
  deny(exchange: Exchange, identity: Identity, why: (call: Call) => void): void;
}

/** Whose the body of a request is; null: the request has been answered. */
export function ownerOfBody(
  parts: ServerParts,
  answers: EarlyAnswers,
  exchange: Exchange,
): BodyShare | null {
  const found = authenticate(exchange, parts.readToken, parts.frontProxy, () =>
    parts.world.edge.nowMs(),
  );
  // others are asked who it is: until then it is nobody
  if (isUnknown(found)) return shareOfPeer(exchange.connection, true);
  if (found === null || (found === ANONYMOUS && !parts.anonymous.isEnabled)) {
    answers.refuse(exchange, found);
    return null;
  }
  const isActing = exchange.header('impersonate-user') !== undefined;
  if (!isActing && isDenied(parts, answers, exchange, found)) return null;
  return shareOf(exchange, found);
}

function isDenied(
  parts: ServerParts,
  answers: EarlyAnswers,
  exchange: Exchange,
  identity: Identity,
): boolean {
  const info = parseRequest(exchange.method, exchange.path);
  if (info === null || info.isBroken === true || identity.isMaster) return false;
  let isDecided = false;
  answers.deny(exchange, identity, (call) => {
    const attributes = attributesOfCall(call);
    const decision = parts.authorize(identity, attributes);
    if (decision.allowed || decision.pending !== undefined || decision.error !== undefined) return;
    isDecided = true;
    parts.tracker.track(call, () => call.deny(denial(identity, attributes, decision.reason)));
  });
  return isDecided;
}

function attributesOfCall(call: Call): Attributes {
  const { info } = call;
  if (!info.isResource) return attributesOf(info, info.verb, info.name, call.query);
  return attributesOf(info, effectiveVerb(call), effectiveName(call), call.query);
}
