/** Names and namespaces of a path that nothing can be kept under. */
import { pathSegmentErrors } from '@megaplane/machinery/names';
import { badRequest, unclassified, type Status } from '@megaplane/machinery/status';
import type { RequestInfo } from './request-info.ts';
import type { Served } from '../storage/served.ts';

/** A path that goes on behind an object without a name: `/api/v1/nodes//status`. */
export function checkNamed({ name, subresource }: RequestInfo): Status | null {
  return name === '' && subresource !== '' ? badRequest('name must be provided') : null;
}

/** Most names need no closer look. */
const ODD = /^\.{1,2}$|[/%]/;

/** Null where an object, or a collection, may have a key; upstream asks when it makes the key. */
export function checkPlace(info: RequestInfo, { prefix, resource }: Served): Status | null {
  const { name, namespace } = info;
  const isInside = resource.namespaced;
  if (isInside && namespace === '' && name !== '') return NOWHERE;
  const faults = ODD.test(name) ? pathSegmentErrors(name) : [];
  if (faults.length > 0) {
    return badRequest(`Name parameter invalid: ${JSON.stringify(name)}: ${faults.join(';')}`);
  }
  if (!isInside || (namespace !== '.' && namespace !== '..')) return null;
  const key = prefix.slice(prefix.indexOf('/', 1)) + namespace + (name === '' ? '' : `/${name}`);
  return unclassified(`invalid key: ${JSON.stringify(key)}`);
}

export const NOWHERE: Status = badRequest('Namespace parameter required.');
