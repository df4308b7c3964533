/** Puts a server together from its parts, with everything that is built in. */
import { AccessMetrics } from '../authentication/access-metrics.ts';
import type { AnonymousRule } from '../authentication/authentication-configuration.ts';
import {
  authorizerChain,
  DEFAULT_CHAIN,
  impatient,
  type ChainLink,
  type ChainLinks,
} from '../authorization/authorizer-chain.ts';
import { Impersonation } from '../authentication/impersonation/impersonation.ts';
import { DecisionCounts } from '../authorization/decision-counts.ts';
import { rulesOf } from '../authorization/rules-review.ts';
import type { Authorizer } from '../authorization/authorization.ts';
import { NodeAuthorizer } from '../authorization/node-authorizer.ts';
import type { FrontProxy } from '../authentication/front-proxy.ts';
import { RemoteServices } from '../aggregator/remote-services.ts';
import { admissionChain, type ChainOptions } from './chain.ts';
import type { PluginConfigurations } from '../admission/plugin-configuration.ts';
import type { TolerationSeconds } from '../admission/plugin/pod-plugins.ts';
import type { WebhookCaller } from '../webhook/webhook-call.ts';
import type { TokenReader } from '../authentication/authentication.ts';
import { UNKNOWN_PROCESS, type ProcessFacts } from '../debug/process-facts.ts';
import { Discovery } from '../discovery/discovery.ts';
import { Fairness } from '../flowcontrol/fairness.ts';
import { Health } from './health.ts';
import { addChecks } from './health-checks.ts';
import { LeaseRenewal, type RenewalParts } from '../fastpath/lease-renewal.ts';
import { Metrics } from './metrics.ts';
import { CustomDefinitions } from '../apiextensions/controller/custom-definitions.ts';
import { defineKinds } from './kinds.ts';
import type { Relay } from '../webhook/target.ts';
import {
  READS_MAX,
  REQUEST_MS_MAX,
  RequestTracker,
  WRITES_MAX,
  type TrackerOptions,
} from './request-tracker.ts';
import { Rbac } from '../authorization/rbac.ts';
import { RepeatedWrites } from '../fastpath/repeated-writes.ts';
import { OpenApiDocuments } from '../openapi/openapi-documents.ts';
import { ApiServer } from './server.ts';
import { TokenChain } from '../authentication/token-chain.ts';
import type { Storage } from '../storage/storage.ts';
import type { TokenSigner } from '../authentication/token-signer.ts';
import { AllocationCounts } from '../metrics/allocation-counts.ts';
import { SERVICE_RANGE } from '../registry/service/service-networks.ts';
import type { Services } from '../registry/rest/services.ts';
import { World, type Edge } from '../lister/world.ts';
import { printAllocations } from '../registry/service/service-metrics.ts';
import type { AdmissionPlugin } from '../admission/admission-plugin.ts';

/** What may differ between servers. */
export interface ServerOptions {
  readonly storage: Storage;
  readonly edge: Edge;
  readonly address: string;
  /** Signs and reads the tokens of service accounts; null: there are none. */
  readonly signer?: TokenSigner | null;
  /** Passes requests on to kubelets and pods; null: there is no way to them. */
  readonly relay?: Relay | null;
  /** Tokens of other kinds than those of service accounts, in the order in which they are tried. */
  readonly tokenReaders?: (world: World) => readonly TokenReader[];
  /** Who is asked what one may do, in this order; default: the Node authorizer, then RBAC. */
  readonly authorizers?: readonly ChainLink[] | ChainLinks;
  readonly plugins?: readonly AdmissionPlugin[];
  /** Reaches webhooks; without it every call of one fails. */
  readonly webhooks?: WebhookCaller;
  readonly enabledPlugins?: readonly string[];
  readonly disabledPlugins?: readonly string[];
  /** How plugins are to work; default: as they do by themselves. */
  readonly pluginConfigurations?: PluginConfigurations;
  readonly tolerationSeconds?: TolerationSeconds;
  /** Who may name users in header fields; default: nobody. */
  readonly frontProxy?: FrontProxy | null;
  /** Requests without a credential; default: they are let in, and may do what anybody may. */
  readonly anonymous?: AnonymousRule;
  /**
   * Milliseconds of a clock that never goes back, with fractions, for priority and fairness. Absent
   * it goes by `edge.nowMs`; null turns priority and fairness off.
   */
  readonly clockMs?: (() => number) | null;
  /** The same clock, to measure what goes on; absent: nothing is measured. */
  readonly stopwatchMs?: () => number;
  /** What is told of the process; absent: nothing. */
  readonly process?: ProcessFacts;
  /** Limits on requests, who writes them down, and who hears of slow ones. */
  readonly tracking?: TrackerOptions;
  /** False sends lease renewals the long way too, to compare the two. */
  readonly shortRenewals?: boolean;
  /** False sends writes that are like others the ordinary way too, to compare the two. */
  readonly repeatedWrites?: boolean;
}

/** Upstream adds the two limits up: seats are given to reads and writes alike. */
function fairnessLimits(tracking: TrackerOptions): { serverSeats: number; requestMsMax: number } {
  const { readsMax = READS_MAX, writesMax = WRITES_MAX, requestMsMax = REQUEST_MS_MAX } = tracking;
  return { serverSeats: readsMax + writesMax, requestMsMax };
}

function chainOptions(options: ServerOptions, metrics: Metrics): ChainOptions {
  return {
    caller: options.webhooks ?? null,
    metrics,
    enabled: options.enabledPlugins,
    disabled: options.disabledPlugins,
    configurations: options.pluginConfigurations,
    tolerationSeconds: options.tolerationSeconds,
    more: options.plugins,
    clockMs: options.stopwatchMs,
  };
}

/** Short ways are for a store that answers at once, and for requests that nobody writes down. */
function hasShortRenewals({ shortRenewals, storage, tracking }: ServerOptions): boolean {
  return shortRenewals !== false && !storage.isShared && (tracking?.auditor ?? null) === null;
}

function renewalsOf(options: ServerOptions, parts: RenewalParts, rbac: Rbac): LeaseRenewal | null {
  if (!hasShortRenewals(options)) return null;
  const renewals = new LeaseRenewal(parts);
  rbac.onChange = () => renewals.forgetGrants();
  return renewals;
}

function linksOf({ authorizers = DEFAULT_CHAIN }: ServerOptions): ChainLinks {
  return typeof authorizers === 'function' ? authorizers : (): typeof authorizers => authorizers;
}

/** What parts of the server count, and what its storage holds. */
function metricsOf(
  world: World,
  services: Services,
  parts: readonly { print(lines: string[]): void }[],
): Metrics {
  const metrics = new Metrics();
  for (const one of parts) metrics.addSource((lines) => one.print(lines));
  metrics.addSource((lines) => world.storage.print?.(lines));
  metrics.addSource((lines) => printAllocations({ world, services }, lines));
  return metrics;
}

interface AccessParts {
  readonly authorize: Authorizer;
  readonly links: ChainLinks;
  readonly rbac: Rbac;
  readonly tokens: TokenChain;
}

/** What strategies and admission ask of the server. */
function servicesOf(
  { signer = null, relay = null, process }: ServerOptions,
  { authorize, links, rbac, tokens }: AccessParts,
): Services {
  return {
    authorize: impatient(authorize),
    decide: authorize,
    rulesOf: (identity, namespace) => rbac.rulesOf(identity, namespace),
    missingRoles: (identity, namespace) => rbac.missingNames(identity, namespace),
    listRules: (identity, namespace) => rulesOf(links(), rbac, identity, namespace),
    signer,
    reviewToken: tokens.review,
    whyNobody: tokens.whyNobody,
    relay,
    probe: process?.probe ?? null,
    allocations: new AllocationCounts(),
    serviceRanges: [SERVICE_RANGE],
  };
}

/** A server whose `handle` answers exchanges; it opens no socket and no file. */
export function createApiServer(options: ServerOptions): ApiServer {
  const { storage, edge } = options;
  const signer = options.signer ?? null;
  const facts = options.process ?? UNKNOWN_PROCESS;
  const world = new World(storage, edge);
  const rbac = new Rbac(world);
  const links = linksOf(options);
  const nodes = new NodeAuthorizer(world);
  const counts = new DecisionCounts();
  const own = { rbac: rbac.authorize, node: nodes.authorize };
  const authorize = authorizerChain(links, own, counts);
  defineKinds();
  const tokens = new TokenChain(world, signer, options.tokenReaders?.(world) ?? []);
  const services = servicesOf({ ...options, process: facts }, { authorize, links, rbac, tokens });
  const remotes = new RemoteServices(world, services.relay);
  remotes.start();
  const definitions = new CustomDefinitions(world, options.webhooks ?? null);
  definitions.start();
  const health = new Health();
  addChecks(health, () => storage.fault);
  const access = new AccessMetrics();
  const metrics = metricsOf(world, services, [access, remotes, definitions, counts, tokens.counts]);
  const admission = admissionChain(world, chainOptions(options, metrics));
  // short ways are for a store that answers at once
  const isOwn = !storage.isShared;
  const hasRepeated = options.repeatedWrites !== false && isOwn;
  const repeated = hasRepeated ? new RepeatedWrites(world, services, admission) : null;
  const clockMs = options.clockMs === undefined ? (): number => edge.nowMs() : options.clockMs;
  const tracking = { ...options.tracking, isUnlimited: clockMs !== null };
  const fairness =
    clockMs === null
      ? null
      : new Fairness(world, { ...fairnessLimits(tracking), clockMs }, (late) => server.late(late));
  if (fairness !== null) metrics.addSource((lines) => fairness.print(lines));
  const server = new ApiServer({
    world,
    services,
    repeated,
    fairness,
    admission,
    authorize,
    impersonation: new Impersonation(authorize, () => edge.nowMs(), metrics),
    readToken: tokens.read,
    frontProxy: options.frontProxy ?? null,
    health,
    process: facts,
    metrics,
    access,
    discovery: new Discovery(world.kinds, options.address, () => edge.nowMs(), remotes),
    remotes,
    openapi: new OpenApiDocuments(world.kinds, edge, remotes),
    tracker: new RequestTracker(() => edge.nowMs(), metrics, tracking),
    renewals: renewalsOf(options, { world, admission, authorize, uuid: edge.uuid() }, rbac),
    address: options.address,
    anonymous: options.anonymous ?? { isEnabled: true, paths: [] },
  });
  health.add('shutdown', () => (server.isDraining ? 'the server is stopping' : null), 'readiness');
  return server;
}
