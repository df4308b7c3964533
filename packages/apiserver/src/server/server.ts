/** The API server: from a request on the wire to the part that answers it. */
import { actFor, guarded } from '@megaplane/base/deferred';
import { badRequest, generic, unauthorized, type Status } from '@megaplane/machinery/status';
import { durationFault } from '@megaplane/machinery/times';
import type { BodyOwner, Exchange } from '@megaplane/wire/exchange';
import {
  authenticate,
  certifiedUntil,
  ignoredTokenWarning,
  isUnknown,
} from '../authentication/authentication.ts';
import {
  attributesOf,
  denial,
  whenDecided,
  type Attributes,
  type Decision,
  failureText,
  outcomeOf,
} from '../authorization/authorization.ts';
import { Call } from '../request/call.ts';
import { ownerOfBody, type EarlyAnswers } from './early-refusal.ts';
import { whenFresh } from '../lister/freshness.ts';
import type { CustomVersion } from '../storage/served.ts';
import { answerPath } from './path-route.ts';
import { ANONYMOUS, type CredentialNotes, type Identity } from '../request/identity.ts';
import { isLongRunning } from '../request/long-running.ts';
import { OutputGate } from '../storage/output-gate.ts';
import { Query } from '../request/query.ts';
import { isUnrouted, parseRequest, type RequestInfo } from '../request/request-info.ts';
import { effectiveName, effectiveVerb } from '../request/request-terms.ts';
import { answerResource } from './resource-route.ts';
import { isGroupServed, type Served } from '../storage/served.ts';
import { answerReadable } from '../serializer/unreadable.ts';
import { WaitingRenewal } from '../fastpath/waiting-renewal.ts';
import type { ServerParts } from './server-parts.ts';

const DEFINITION = 'CustomResourceDefinition';
/** What HTTP knows (RFC 9110 9, RFC 5789): nothing else is looked at. */
const METHODS: ReadonlySet<string> = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT'.split(' '),
);
/** Parts of one by which chances are drawn. */
const CHANCES = 1_000_000;
/** Ids of the audit log that clients give themselves are no longer; longer ones are not taken. */
const AUDIT_ID_LENGTH_MAX = 64;

/** Times that a credential is looked at anew while others are asked about it. */
const ATTEMPTS_MAX = 3;

/** When a request came, and how long it took then to find out who asks. */
interface Arrival {
  readonly receivedMs: number;
  readonly identifyingMs: number;
}

export class ApiServer {
  readonly parts: ServerParts;
  readonly #gate: OutputGate;
  readonly #auditPrefix: string;
  #requests = 0;
  /** Set while stopping: new requests are refused. */
  isDraining = false;

  constructor(parts: ServerParts) {
    this.parts = parts;
    this.#gate = new OutputGate(parts.world.storage);
    parts.admission.onLate((connection) => this.#gate.guard(connection));
    // one random UUID a process, counted up: unique and cheap
    this.#auditPrefix = parts.world.edge.uuid().slice(0, 24);
  }

  /** Answers one request; the handler of the listener. */
  readonly handle = (exchange: Exchange): void => {
    if (!METHODS.has(exchange.method)) {
      exchange.respond(501, 'text/plain; charset=utf-8', '501 Not Implemented', []);
      return;
    }
    this.#sendAway(exchange);
    this.#identify(exchange, ATTEMPTS_MAX, 0, this.#clockMs());
  };

  /** Whose a body is that comes slowly; of the listener. */
  readonly ownerOfBody: BodyOwner = (exchange) => ownerOfBody(this.parts, this.#early, exchange);

  readonly #early: EarlyAnswers = {
    refuse: (exchange, identity) => {
      this.#countSender(exchange, identity, 0);
      this.#answer(exchange, identity, {
        receivedMs: this.parts.world.edge.nowMs(),
        identifyingMs: 0,
      });
      this.#gate.guard(exchange.connection);
    },
    deny: (exchange, identity, why) => {
      const info = parseRequest(exchange.method, exchange.path);
      why(this.#call(exchange, info, identity, this.parts.world.edge.nowMs()));
    },
  };

  readonly #nowMs = (): number => this.parts.world.edge.nowMs();

  /** Measures what the audit log tells; stands still where there is none. */
  #clockMs(): number {
    return this.parts.tracker.auditor?.clockMs() ?? 0;
  }

  /** Finds out who asks, which may take longer than this turn, and goes on from there. */
  #identify(exchange: Exchange, attempts: number, askedMs: number, cameMs: number): void {
    const found = authenticate(exchange, this.parts.readToken, this.parts.frontProxy, this.#nowMs);
    if (isUnknown(found) && attempts > 0) {
      exchange.keepBody();
      const { edge } = this.parts.world;
      const sinceMs = askedMs === 0 ? edge.nowMs() : askedMs;
      found.pending(() => {
        if (exchange.closed) return;
        const broke = (): void => exchange.reset();
        actFor({ broke }, () => this.#identify(exchange, attempts - 1, sinceMs, cameMs));
      });
      return;
    }
    const identity = isUnknown(found) ? null : found;
    const tookMs = askedMs === 0 ? 0 : this.parts.world.edge.nowMs() - askedMs;
    this.#countSender(exchange, identity, tookMs);
    exchange.connection.rest = 'never';
    const isRenewed =
      identity !== null && exchange.method === 'PUT' && this.#renew(exchange, identity);
    if (!isRenewed) {
      const identifyingMs = this.#clockMs() - cameMs;
      const receivedMs = askedMs === 0 ? this.parts.world.edge.nowMs() : askedMs;
      this.#answer(exchange, identity, { receivedMs, identifyingMs });
    }
    this.#gate.guard(exchange.connection);
  }

  #countSender(exchange: Exchange, identity: Identity | null, tookMs: number): void {
    const { access, world } = this.parts;
    if (identity !== null) access.countAttempt('success', identity.user, tookMs);
    else {
      const isShown = exchange.header('authorization') !== undefined || exchange.connection.secure;
      access.countAttempt(isShown ? 'error' : 'failure', '', tookMs);
    }
    const until = identity === null ? 0 : certifiedUntil(exchange.connection);
    if (until > 0) access.countCertificate(until - world.edge.nowMs());
  }

  /** Renews a lease the short way, if it is one, now or when its turn has come. */
  #renew(exchange: Exchange, identity: Identity): boolean {
    const { renewals, fairness } = this.parts;
    if (renewals === null || actsForOthers(exchange)) return false;
    const namespace = renewals.namespaceOf(exchange);
    if (namespace === '') return false;
    const flow = fairness?.leaseFlow(identity, namespace);
    if (flow === undefined || fairness === null) return this.#tryRenew(exchange, identity, []);
    exchange.connection.rest = fairness.restAfter(flow);
    if (fairness.mayRenew(flow)) {
      if (!this.#tryRenew(exchange, identity, flow.route.fields)) return false;
      fairness.countRenewal(flow);
      return true;
    }
    const waiting = new WaitingRenewal(exchange, identity, this.parts.world.edge.nowMs(), () => {
      const call = this.#call(exchange, waiting.info, identity, this.parts.world.edge.nowMs());
      call.flowFields = flow.route.fields;
      this.parts.tracker.track(call, () => void this.parts.tracker.admit(call));
      return call;
    });
    fairness.holdRenewal(flow, waiting, exchange.body.length, () => {
      if (this.#tryRenew(exchange, identity, flow.route.fields)) waiting.answered(200);
      else {
        waiting.done();
        const receivedMs = this.parts.world.edge.nowMs();
        this.#answer(exchange, identity, { receivedMs, identifyingMs: 0 });
      }
    });
    return true;
  }

  #tryRenew(exchange: Exchange, identity: Identity, fields: readonly string[]): boolean {
    const { renewals, metrics } = this.parts;
    if (renewals === null || !renewals.tryRenew(exchange, identity, fields)) return false;
    metrics.countRenewal(exchange.body.length);
    this.parts.access.countDecision('allowed', 0);
    return true;
  }

  #answer(exchange: Exchange, identity: Identity | null, arrival: Arrival): void {
    const info = parseRequest(exchange.method, exchange.path);
    const call = this.#call(exchange, info, identity ?? ANONYMOUS, arrival.receivedMs);
    if (info === null) {
      call.code = 400;
      exchange.respond(400, 'text/plain; charset=utf-8', '400 Bad Request', []);
      return;
    }
    actFor(call, () => this.#admit(call, info, identity, arrival));
  }

  #admit(call: Call, info: RequestInfo, identity: Identity | null, arrival: Arrival): void {
    const { exchange } = call;
    if (info.isBroken === true) {
      const { path } = exchange;
      const fault = `unable to determine kind and namespace from url, ${path}`;
      call.sendText(500, failureText(path, `failed to create RequestInfo: ${fault}`));
      return;
    }
    const isAnonymous = identity === ANONYMOUS;
    const warning = isAnonymous ? ignoredTokenWarning(exchange) : '';
    if (warning !== '') call.warn(warning);
    if (identity?.notes !== undefined) tellNotes(call, identity.user, identity.notes);
    // upstream looks at the time before it asks who comes
    const early = call.query.isEmpty || isLongRunning(call) ? null : timeoutFault(call);
    const isStranger = identity === null || (isAnonymous && !this.#isOpen(info.path));
    if (early !== null || isStranger) {
      const { auditor } = this.parts.tracker;
      auditor?.unauthenticated(call);
      call.fail(early ?? unauthorized());
      auditor?.refused(call);
      return;
    }
    this.parts.tracker.track(call, (isLater) => {
      call.record?.noteLatency('authentication', arrival.identifyingMs, false);
      this.#route(call);
      if (isLater) this.late(exchange);
    });
  }

  /** Whether one may ask for a path without saying who one is. */
  #isOpen(path: string): boolean {
    const { isEnabled, paths } = this.parts.anonymous;
    return isEnabled && (paths.length === 0 || paths.includes(path));
  }

  /** Now and then, a client is asked to connect anew, so that load spreads over servers. */
  #sendAway(exchange: Exchange): void {
    const chance = this.parts.tracker.goawayChance;
    if (chance === 0 || exchange.connection.protocol !== 'h2') return;
    if (this.parts.world.edge.below(CHANCES) < chance * CHANCES) exchange.connection.drain();
  }

  #call(
    exchange: Exchange,
    info: RequestInfo | null,
    identity: Identity,
    receivedMs: number,
  ): Call {
    this.#requests++;
    const own = this.#auditPrefix + this.#requests.toString(16).padStart(12, '0');
    const given = exchange.header('audit-id') ?? '';
    const audit = given === '' || given.length > AUDIT_ID_LENGTH_MAX ? own : given;
    const query = new Query(exchange.path);
    const fallback = info ?? NOWHERE;
    return new Call(exchange, fallback, query, identity, receivedMs, audit);
  }

  #route(call: Call): void {
    const { info } = call;
    const { kinds } = this.parts.world;
    const served = info.isResource
      ? kinds.find(info.group, info.version, info.resource)
      : undefined;
    const verb = info.isResource ? effectiveVerb(call) : info.verb;
    const name = info.isResource ? effectiveName(call) : info.name;
    const attributes = attributesOf(info, verb, name, call.query);
    let isLater = false;
    this.parts.impersonation.act(call, attributes, (acting) => {
      if (!acting.ok) {
        call.deny(acting.status);
        return;
      }
      call.identity = acting.value;
      const { fairness, tracker } = this.parts;
      if (!tracker.admit(call)) return;
      const decide = (): void => this.#decide(call, attributes, served);
      if (fairness === null || (verb !== 'watch' && isLongRunning(call))) decide();
      else fairness.admit(call, verb, served, decide);
      if (isLater) this.late(call.exchange);
    });
    isLater = true;
  }

  #decide(call: Call, attributes: Attributes, served: Served | undefined): void {
    const { authorize } = this.parts;
    const noted = call.timed('authorization', () => {});
    const decision = authorize(call.identity, attributes);
    if (decision.pending === undefined) {
      noted();
      this.#decided(call, attributes, served, decision, 0);
      return;
    }
    call.keepBody();
    const { edge } = this.parts.world;
    const sinceMs = edge.nowMs();
    const go = guarded((late: Decision) => {
      if (call.exchange.closed || call.code !== 0) return;
      this.late(call.exchange);
      noted();
      this.#decided(call, attributes, served, late, edge.nowMs() - sinceMs);
    });
    whenDecided(authorize, call.identity, attributes, go);
  }

  #decided(
    call: Call,
    attributes: Attributes,
    served: Served | undefined,
    decision: Decision,
    tookMs: number,
  ): void {
    const { info } = call;
    this.parts.access.countDecision(outcomeOf(decision), tookMs);
    if (!decision.allowed && decision.error !== undefined) {
      call.annotate('authorization.k8s.io/reason', 'internal error');
      call.sendText(500, failureText(call.exchange.path, decision.error));
      return;
    }
    call.annotate('authorization.k8s.io/decision', decision.allowed ? 'allow' : 'forbid');
    call.annotate('authorization.k8s.io/reason', decision.reason);
    if (!decision.allowed) {
      call.deny(denial(call.identity, attributes, decision.reason));
      return;
    }
    const remote = this.parts.remotes.behind(info);
    if (remote !== undefined) {
      this.parts.remotes.pass(call, remote);
      return;
    }
    if (!info.isResource || isUnrouted(info)) {
      call.isRouted = true;
      this.#whenWhole(call, () => answerPath(this.parts, call));
      return;
    }
    if (served === undefined) {
      if (isGroupServed(info.group)) call.fail(generic('NotFound'));
      else call.sendText(404, '404 page not found\n');
      return;
    }
    const world = this.parts.world.at(served);
    whenFresh(world, call, served, () => {
      this.#inItsTurn(call, served, () => {
        answerReadable(call, () => answerResource(world, this.parts, call, served));
      });
    });
  }

  /**
   * Judging a definition takes milliseconds: where many come at once, whoever sends them, each turn
   * does a few, and what others ask for goes between.
   */
  #inItsTurn(call: Call, served: Served, answer: () => void): void {
    const { edge } = this.parts.world;
    if (served.custom !== null) {
      this.#whenPrepared(call, served.custom, answer);
      return;
    }
    if (edge.runPiece === undefined || !isSlow(call, served)) {
      answer();
      return;
    }
    let isLater = false;
    const work = (): void => {
      if (isLater && (call.exchange.closed || call.code !== 0)) return;
      answer();
      if (isLater) this.late(call.exchange);
    };
    edge.runPiece(work, () => {
      call.keepBody();
      isLater = true;
    });
  }

  /** What names every kind waits for the definitions that a start has not read yet. */
  #whenWhole(call: Call, answer: () => void): void {
    if (!NAMES_KINDS.test(call.info.path)) {
      answer();
      return;
    }
    let isLater = false;
    this.parts.world.kinds.whenWhole(() => {
      if (isLater && (call.exchange.closed || call.code !== 0)) return;
      answer();
      if (isLater) this.late(call.exchange);
    });
    isLater = true;
  }

  /** The first object of a kind waits for the schema, which may be large. */
  #whenPrepared(call: Call, custom: CustomVersion, answer: () => void): void {
    const { edge } = this.parts.world;
    const { method } = call.exchange;
    const judges = method !== 'GET' && method !== 'DELETE';
    const steps = custom.schemas.preparing(custom, judges);
    if (edge.walk === undefined || steps === null) {
      answer();
      return;
    }
    let isLater = false;
    const done = (): void => {
      if (isLater && (call.exchange.closed || call.code !== 0)) return;
      answer();
      if (isLater) this.late(call.exchange);
    };
    const waits = (): void => {
      call.keepBody();
      isLater = true;
    };
    edge.walk(steps, waits, done);
  }

  /** A request was answered, or begun to be, in a later turn than it came in. */
  late({ connection }: Exchange): void {
    this.#gate.guard(connection);
  }

  /** About once a second: bookmarks, timeouts, waiting reads. */
  tick(nowMs: number): void {
    this.parts.world.tick(nowMs);
    this.parts.remotes.tick(nowMs);
    this.parts.tracker.tick(nowMs);
    this.parts.fairness?.tick();
  }

  /** Says not to be ready any more, so that nobody new is sent here; all goes on as before. */
  announceStop(): void {
    this.isDraining = true;
  }

  /** Ends all watches, so that connections can drain. */
  drain(): void {
    this.isDraining = true;
    this.parts.world.endWatches();
  }
}

/** The fields of those who act for others; what they ask for is not theirs alone. */
function actsForOthers(exchange: Exchange): boolean {
  return ACTING.some((name) => exchange.header(name) !== undefined);
}

const ACTING = ['impersonate-user', 'impersonate-group', 'impersonate-uid'] as const;

/** What upstream tells of tokens that are old, or of an old kind. */
function tellNotes(call: Call, user: string, notes: CredentialNotes): void {
  for (const [name, value] of Object.entries(notes.annotations)) call.annotate(name, value);
  if (notes.warning !== '') call.warn(notes.warning);
  if (notes.staleFromMs === 0 || call.nowMs <= notes.staleFromMs) return;
  const seconds = Math.floor(call.nowMs / 1000) - Math.floor(notes.staleFromMs / 1000);
  const told = `subject: ${user}, seconds after warning threshold: ${seconds}`;
  call.annotate('authentication.k8s.io/stale-token', told);
}

/** The `timeout` of a request that does not last, where it is none. */
function timeoutFault({ query }: Call): Status | null {
  const text = query.text('timeout');
  const fault = text === '' ? '' : durationFault(text);
  if (fault === '') return null;
  return badRequest(`invalid timeout specified in the request URL - ${fault}`);
}

/** Paths of discovery and of OpenAPI. */
const NAMES_KINDS = /^\/(?:apis?|openapi)(?:\/|$)/;

/** Writes of definitions. */
function isSlow({ exchange: { method } }: Call, { resource }: Served): boolean {
  return resource.kind === DEFINITION && method !== 'GET' && method !== 'DELETE';
}

const NOWHERE: RequestInfo = {
  isResource: false,
  path: '/',
  verb: 'get',
  group: '',
  version: '',
  namespace: '',
  resource: '',
  name: '',
  subresource: '',
  extra: false,
  isInside: false,
};
