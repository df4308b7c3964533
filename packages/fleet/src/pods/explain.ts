/** The question `project`: the CapacityRequest of a pod. */
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { classPenalties } from './class-penalties.ts';
import { projectPod } from './projection.ts';

/** `{"pod", "priorityClassDefaults"?}` to `{"capacityRequest"}`; null: there must be none. */
export function explainProjection(question: Readonly<Record<string, unknown>>): object {
  const pod = question['pod'] as JsonValue | undefined;
  if (!isObject(pod)) throw new Error('pod is an object');
  const classes = classPenalties(question['priorityClassDefaults'] as JsonValue | undefined);
  return { capacityRequest: projectPod(pod, classes) ?? null };
}
