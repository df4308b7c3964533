/** Puts a server together from its parts, with everything that is built in. */
import { Admission, type AdmissionPlugin } from './admission.ts';
import type { TokenReader } from './authentication.ts';
import { authorizeMasters, firstThatAllows, type Authorizer } from './authorization.ts';
import { authorizeComponents } from './component-grants.ts';
import { Health } from './health.ts';
import { LeaseRenewal } from './lease-renewal.ts';
import { Metrics } from './metrics.ts';
import { namespaceLifecycle } from './namespaces.ts';
import { defineAll } from './kinds.ts';
import { ApiServer } from './server.ts';
import type { Storage } from './storage.ts';
import { World, type Edge } from './world.ts';

/** What may differ between servers. */
export interface ServerOptions {
  readonly storage: Storage;
  readonly edge: Edge;
  readonly address: string;
  readonly readToken?: TokenReader;
  /** Asked after the built-in authorizers. */
  readonly authorizers?: readonly Authorizer[];
  readonly plugins?: readonly AdmissionPlugin[];
  readonly anonymous?: boolean;
}

/** A server whose `handle` answers exchanges; it opens no socket and no file. */
export function createApiServer(options: ServerOptions): ApiServer {
  defineAll();
  const { storage, edge } = options;
  const world = new World(storage, edge);
  const authorize = firstThatAllows([
    authorizeMasters,
    authorizeComponents,
    ...(options.authorizers ?? []),
  ]);
  const health = new Health();
  health.add('ping', () => null);
  const plugins = [namespaceLifecycle, ...(options.plugins ?? [])];
  return new ApiServer({
    world,
    admission: new Admission(plugins),
    authorize,
    readToken: options.readToken ?? (() => null),
    health,
    metrics: new Metrics(),
    renewals: new LeaseRenewal(storage, authorize, () => edge.nowMs(), edge.uuid()),
    address: options.address,
    anonymous: options.anonymous ?? true,
  });
}
