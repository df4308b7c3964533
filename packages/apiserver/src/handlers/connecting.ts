/**
 * Connections to pods, services and nodes (exec, attach, port-forward, proxy): what admission is
 * told of them. The object of such a request is its options, which stand in the query.
 */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import type { Call } from '../request/call.ts';
import { revisionFault } from '../request/query.ts';
import { pathBehind } from '../request/request-info.ts';
import type { WriteContext } from './writing.ts';
import type { Admission } from '../admission/admission.ts';
import type { Admitted } from '../registry/rest/admitted.ts';

const CONNECTED: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy']);
const STREAMS = ['stdin', 'stdout', 'stderr', 'tty'] as const;
const PORT_MAX = 65_535;

/** Asks admission whether a connection may be made; answers where it may not. */
export function admitConnection(
  context: WriteContext,
  admission: Admission,
  run: () => void,
): void {
  const { call, served } = context;
  const { subresource } = call.info;
  const kind = served.resource.subresources.get(subresource);
  if (!CONNECTED.has(subresource) || kind === undefined) {
    run();
    return;
  }
  if (call.query.text('dryRun') !== '') {
    call.fail(badRequest('dryRun is not supported'));
    return;
  }
  const options = optionsOf(call, kind.kind);
  if (!options.ok) {
    call.fail(options.status);
    return;
  }
  const write: Admitted = {
    ...context,
    operation: 'CONNECT',
    subresource,
    object: options.value,
    previous: null,
  };
  let isLater = false;
  admission.admit(write, (refusal) => {
    if (isLater && (call.exchange.closed || call.code !== 0)) return;
    if (refusal === null) run();
    else call.fail(refusal);
  });
  isLater = true;
  // the body is for whoever is behind the connection, in a later turn too
  if (call.code === 0 && !call.exchange.closed) call.keepBody();
}

/** The options as an object of their kind, with fields in the order of upstream's type. */
function optionsOf(call: Call, kind: string): Result<JsonObject> {
  const { query, info } = call;
  const options: JsonObject = { kind, apiVersion: 'v1' };
  if (info.subresource === 'proxy') {
    const path = pathBehind(info);
    if (path !== '') options['path'] = path;
    return success(options);
  }
  if (info.subresource === 'portforward') {
    const texts = query.all('ports').flatMap((text) => text.split(','));
    const wrong = texts.find((text) => !/^\d+$/.test(text) || Number(text) > PORT_MAX);
    if (wrong !== undefined) {
      return failed(badRequest(`cannot convert to []int32: ${revisionFault(wrong)}`));
    }
    const ports = texts.map(Number);
    if (ports.length > 0) options['ports'] = ports;
    return success(options);
  }
  for (const stream of STREAMS) if (query.flag(stream)) options[stream] = true;
  const container = query.text('container');
  if (container !== '') options['container'] = container;
  if (info.subresource === 'exec') {
    const command = query.all('command');
    options['command'] = command.length === 0 ? null : [...command];
  }
  return success(options);
}
