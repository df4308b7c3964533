/** What a server is put together from. */
import type { RemoteServices } from '../aggregator/remote-services.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Admission } from '../admission/admission.ts';
import type { ProcessFacts } from '../debug/process-facts.ts';
import type { Fairness } from '../flowcontrol/fairness.ts';
import type { AccessMetrics } from '../authentication/access-metrics.ts';
import type { AnonymousRule } from '../authentication/authentication-configuration.ts';
import type { FrontProxy } from '../authentication/front-proxy.ts';
import type { TokenReader } from '../authentication/authentication.ts';
import type { Authorizer } from '../authorization/authorization.ts';
import type { Impersonation } from '../authentication/impersonation/impersonation.ts';
import type { Health } from './health.ts';
import type { LeaseRenewal } from '../fastpath/lease-renewal.ts';
import type { Metrics } from './metrics.ts';
import type { RequestTracker } from './request-tracker.ts';
import type { OpenApiDocuments } from '../openapi/openapi-documents.ts';
import type { RepeatedWrites } from '../fastpath/repeated-writes.ts';
import type { Services } from '../registry/rest/services.ts';
import type { World } from '../lister/world.ts';

/** What a server is made of; every part can be replaced in a test. */
export interface ServerParts {
  readonly world: World;
  readonly services: Services;
  /** Writes from templates; null where every write goes the ordinary way. */
  readonly repeated: RepeatedWrites | null;
  readonly admission: Admission;
  readonly authorize: Authorizer;
  readonly readToken: TokenReader;
  /** Who may name users in header fields; null: nobody. */
  readonly frontProxy: FrontProxy | null;
  readonly health: Health;
  readonly process: ProcessFacts;
  readonly impersonation: Impersonation;
  readonly metrics: Metrics;
  readonly access: AccessMetrics;
  readonly discovery: Discovery;
  readonly openapi: OpenApiDocuments;
  /** API servers behind this one. */
  readonly remotes: RemoteServices;
  readonly tracker: RequestTracker;
  /** Decides which request goes first; null: none waits for another. */
  readonly fairness: Fairness | null;
  /** The short way for lease renewals; null turns it off. */
  readonly renewals: LeaseRenewal | null;
  /** `host:port`, as legacy discovery tells it. */
  readonly address: string;
  readonly anonymous: AnonymousRule;
}
