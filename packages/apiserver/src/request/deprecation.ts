/** Warnings that go with every answer about a resource that upstream has deprecated. */
import type { Served } from '../storage/served.ts';

const TEXTS: ReadonlyMap<string, string> = new Map([
  ['v1/endpoints', 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice'],
  ['v1/componentstatuses', 'v1 ComponentStatus is deprecated in v1.19+'],
]);

/** The text, or `''`. */
export function deprecationOf(served: Served): string {
  if (served.custom !== null) return served.custom.facts.warning;
  return TEXTS.get(`${served.resource.apiVersion}/${served.resource.resource}`) ?? '';
}
