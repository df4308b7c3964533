/** The question `rollup`: what the operator of a cluster makes of its requests. */
import { toJson } from '@bufbuild/protobuf';
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { CapacityNeedSchema } from '../contract/tables/capacity.ts';
import { needOf } from './cell.ts';
import { rollUp } from './full.ts';

/** `{"requests"}` to `{"needs", "fingerprints", "pending", "skipped"}`, by the strict rules. */
export function explainRollUp(question: Readonly<Record<string, unknown>>): object {
  const requests = (question['requests'] ?? []) as JsonValue;
  if (!Array.isArray(requests)) throw new Error('requests is a list of CapacityRequests');
  for (const [index, request] of requests.entries()) {
    if (!isObject(request)) throw new Error(`requests[${index}] is no object`);
  }
  const result = rollUp(requests as JsonObject[], { groupsByNamespace: false });
  return {
    needs: result.rows.map((row) => toJson(CapacityNeedSchema, needOf(row))),
    fingerprints: result.rows.map((row) => row.fingerprint),
    pending: result.pending,
    skipped: [...result.skipped.keys()],
  };
}
