/** Groups of pods and workloads: what is not kept, and that a group's template is there. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { forbidden, type Status } from '@megaplane/machinery/status';
import { defineBehaviour, type RuleContext } from '../rest/behaviour.ts';
import { decodeRow } from '../../serializer/encoder.ts';
import { findServed, keyOf } from '../../storage/served.ts';
import { emptyRow } from '../../storage/storage.ts';

/**
 * Members behind gates that are off by default: TopologyAwareWorkloadScheduling,
 * DRAWorkloadResourceClaims and WorkloadAwarePreemption.
 */
const GATED = [
  'schedulingConstraints',
  'resourceClaims',
  'disruptionMode',
  'priorityClassName',
  'priority',
];
/** What the member says wherever nobody may say it. */
const DISRUPTION_MODE = 'Pod';

const row = emptyRow();

/** Registers them. */
export function definePodGroups(): void {
  defineBehaviour('podgroups.scheduling.k8s.io', {
    prepareCreate: dropFromGroup,
    prepareUpdate: dropFromGroup,
    prepareStatus: (group) => void delete objectAt(group, 'status')?.['resourceClaimStatuses'],
    allocate: templateRefusal,
  });
  defineBehaviour('workloads.scheduling.k8s.io', {
    prepareCreate: dropFromTemplates,
    prepareUpdate: dropFromTemplates,
  });
}

function dropFromGroup(group: JsonObject): void {
  const spec = objectAt(group, 'spec');
  if (spec === undefined) return;
  for (const member of GATED) delete spec[member];
  spec['disruptionMode'] = DISRUPTION_MODE;
}

function dropFromTemplates(workload: JsonObject): void {
  for (const template of listAt(workload, 'spec', 'podGroupTemplates')) {
    for (const member of GATED) delete (template as JsonObject)[member];
    // In a template this one is written even where it says nothing.
    (template as JsonObject)['schedulingConstraints'] = null;
  }
}

/** Admission plugin PodGroupWorkloadExists. */
function templateRefusal(group: JsonObject, { world, call, served }: RuleContext): Status | null {
  const reference = objectAt(group, 'spec', 'podGroupTemplateRef', 'workload');
  if (reference === undefined) return null;
  const name = stringAt(reference, 'workloadName');
  const wanted = stringAt(reference, 'podGroupTemplateName');
  const refused = (why: string): Status =>
    forbidden(served.plural, stringAt(group, 'metadata', 'name'), `PodGroup rejected: ${why}`);
  const shown = JSON.stringify(name);
  const workloads = findServed('scheduling.k8s.io', 'v1alpha2', 'workloads');
  const key = workloads === undefined ? null : keyOf(workloads, call.info.namespace, name);
  if (workloads === undefined || key === null || !world.storage.get(key, row)) {
    return refused(`Workload ${shown} not found`);
  }
  const workload = decodeRow(workloads, row, row.modRevision);
  if (stringAt(workload, 'metadata', 'deletionTimestamp') !== '') {
    return refused(`Workload ${shown} is being deleted`);
  }
  const templates = listAt(workload, 'spec', 'podGroupTemplates');
  if (templates.some((template) => stringAt(template, 'name') === wanted)) return null;
  return refused(`PodGroupTemplate ${JSON.stringify(wanted)} not found in Workload ${shown}`);
}
