/** The condition PodGroupScheduled: what became of a group when its pods were tried last. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import type { ObjectWrite } from '../framework/reservation.ts';

const TYPE = 'PodGroupScheduled';

/** `key`: `namespace/name`; `message` empty: the group has been placed. */
export function groupCondition(key: string, message: string, isError = false): ObjectWrite {
  const slash = key.indexOf('/');
  const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
  const isPlaced = message === '';
  const why = isError ? 'SchedulerError' : 'Unschedulable';
  return {
    kind: 'PodGroup',
    key,
    path: `/apis/scheduling.k8s.io/v1alpha2/namespaces/${namespace}/podgroups/${name}`,
    subresource: 'status',
    about: `condition of pod group ${key}`,
    change: (group, nowMs) => {
      const status = isObject(group['status']) ? group['status'] : {};
      const listed = Array.isArray(status['conditions']) ? status['conditions'] : [];
      const conditions = listed.filter(isObject);
      const before = conditions.find(({ type }) => type === TYPE);
      const metadata = isObject(group['metadata']) ? group['metadata'] : {};
      const wanted: JsonObject = {
        type: TYPE,
        status: isPlaced ? 'True' : 'False',
        reason: isPlaced ? 'Scheduled' : why,
        message,
        observedGeneration: metadata['generation'] ?? 0,
      };
      // A group that was placed once stays so, whatever becomes of pods that join it.
      if (before?.['status'] === 'True' && !isPlaced) return null;
      const told = ['status', 'reason', 'message', 'observedGeneration'];
      const isSame = told.every((member) => before?.[member] === wanted[member]);
      if (isSame) return null;
      const lastTransitionTime =
        before !== undefined && before['status'] === wanted['status']
          ? (before['lastTransitionTime'] ?? '')
          : `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
      const others = conditions.filter(({ type }) => type !== TYPE);
      const all = [...others, { ...wanted, lastTransitionTime }];
      return { ...group, status: { ...status, conditions: all } };
    },
  };
}
