/** Whether anybody stands behind the Service of an extension, as upstream looks at its slices. */
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { decodeRow } from '../serializer/encoder.ts';
import { findServed, rangeOf } from '../storage/served.ts';
import type { World } from '../lister/world.ts';
import type { Availability } from './remote-service.ts';
import type { RemoteSpec } from './remote-publications.ts';

/** What is missing, where it is: null for Services without an address of the cluster, too. */
export function missingEnds(
  world: World,
  { namespace, service, port }: RemoteSpec,
  stored: JsonObject,
): Availability | null {
  if (!['', 'ClusterIP'].includes(stringAt(stored, 'spec', 'type'))) return null;
  const ports = listAt(stored, 'spec', 'ports');
  const listening = ports.find((one) => numberAt(one, 'port') === port);
  const where = `service/${service} in ${JSON.stringify(namespace)}`;
  if (listening === undefined) {
    return missing('ServicePortError', `${where} is not listening on port ${port}`);
  }
  const slices = slicesOf(world, namespace, service);
  if (slices.length === 0) {
    return missing('EndpointsNotFound', `cannot find endpointslices for ${where}`);
  }
  const name = stringAt(listening, 'name');
  if (slices.some((slice) => isReady(slice, name))) return null;
  const text = `endpointslices for ${where} have no addresses with port name`;
  return missing('MissingEndpoints', `${text} ${JSON.stringify(name)}`);
}

function missing(reason: string, message: string): Availability {
  return { isAvailable: false, reason, message };
}

function isReady(slice: JsonObject, portName: string): boolean {
  const hasEnd = listAt(slice, 'endpoints').some(
    (end) => objectAt(end, 'conditions')?.['ready'] !== false,
  );
  const hasPort = listAt(slice, 'ports').some(
    (port) => stringAt(port, 'name') === portName && objectAt(port)?.['port'] !== undefined,
  );
  return hasEnd && hasPort;
}

function slicesOf(world: World, namespace: string, service: string): JsonObject[] {
  const served = findServed('discovery.k8s.io', 'v1', 'endpointslices');
  const found: JsonObject[] = [];
  if (served === undefined) return found;
  const { start, end } = rangeOf(served, namespace);
  world.storage.page(start, end, 0, (row) => {
    const slice = decodeRow(served, row, row.modRevision);
    const labels = objectAt(slice, 'metadata', 'labels');
    if (labels?.['kubernetes.io/service-name'] === service) found.push(slice);
    return true;
  });
  return found;
}
