/** Jobs, deployments and daemon sets: what their creation and their deletion do by themselves. */
import { equals, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { defineBehaviour, ORPHANING_DELETION, type RuleContext } from '../rest/behaviour.ts';
import { withDefaults } from '../rest/schema-gate.ts';

const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';
const UID_LABEL = 'batch.kubernetes.io/controller-uid';
const JOB_WARNING =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background ' +
  'to remove them or set propagationPolicy=Orphan to suppress this warning';

/** Jobs that were sent without labels: they show those of their template, whatever is added. */
const unlabelled = new WeakSet<JsonObject>();

/** Registers them. */
export function defineWorkloads(): void {
  defineBehaviour('jobs.batch', {
    deletion: ORPHANING_DELETION,
    startCreate: (job) => {
      const metadata = objectAt(job, 'metadata') ?? {};
      if (Object.keys(objectAt(metadata, 'labels') ?? {}).length > 0) return;
      if (stringAt(metadata, 'name') !== '') unlabelled.add(job);
      // what has no name yet is copied before more comes to the labels of its template
      const labels = objectAt(job, 'spec', 'template', 'metadata', 'labels');
      if (stringAt(metadata, 'name') !== '' || labels === undefined) return;
      job['metadata'] = { ...metadata, labels: { ...labels } };
    },
    prepareCreate: selectOwnPods,
    deleteWarning: JOB_WARNING,
  });
  // its labels are not part of a deployment's status, though its annotations are
  defineBehaviour('deployments.apps', {
    prepareStatus: (next, previous) => {
      const { labels: _, ...metadata } = objectAt(next, 'metadata') ?? {};
      const labels = objectAt(previous, 'metadata', 'labels');
      next['metadata'] = labels === undefined ? metadata : { ...metadata, labels };
    },
  });
  defineBehaviour('statefulsets.apps', {
    prepareCreate: (set) => dropUnavailable(set, {}),
    prepareUpdate: dropUnavailable,
  });
  defineBehaviour('daemonsets.apps', {
    startCreate: (set) => tellTemplate(set, Math.max(1, templateOf(set))),
    // who sends none has sent 0, and owns it
    startUpdate: (next) => tellTemplate(next, templateOf(next)),
    prepareUpdate: countTemplate,
    prepareStatus: (next, previous) => tellTemplate(next, templateOf(previous)),
  });
}

/** How many pods of a stateful set may be away is off by default. */
function dropUnavailable(next: JsonObject, previous: JsonObject): void {
  const of = (set: JsonObject): JsonObject | undefined =>
    objectAt(set, 'spec', 'updateStrategy', 'rollingUpdate');
  if (of(previous)?.['maxUnavailable'] === undefined) delete of(next)?.['maxUnavailable'];
}

function templateOf(set: JsonObject): number {
  return Number.parseInt(stringAt(set, 'metadata', 'annotations', TEMPLATE_GENERATION), 10) || 0;
}

function tellTemplate(set: JsonObject, generation: number): void {
  const metadata = objectAt(set, 'metadata') ?? {};
  const annotations: JsonObject = {
    ...objectAt(metadata, 'annotations'),
    [TEMPLATE_GENERATION]: String(generation),
  };
  set['metadata'] = { ...metadata, annotations };
}

/** The generation of a daemon set's template goes up by one with each change of the template. */
function countTemplate(next: JsonObject, previous: JsonObject, { served }: RuleContext): void {
  // what was left out comes back by defaults, and is no change then
  const whole = withDefaults(served, structuredClone(next));
  const isSame = equals(
    objectAt(whole, 'spec', 'template') ?? {},
    objectAt(previous, 'spec', 'template') ?? {},
  );
  tellTemplate(next, templateOf(previous) + (isSame ? 0 : 1));
}

/** A job owns the pods that carry its uid, unless it brings a selector of its own. */
function selectOwnPods(job: JsonObject): void {
  const spec = objectAt(job, 'spec') ?? {};
  if (spec['manualSelector'] === true) return;
  const uid = stringAt(job, 'metadata', 'uid');
  const name = stringAt(job, 'metadata', 'name');
  const labels: JsonObject = {
    [UID_LABEL]: uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
  };
  const template = objectAt(spec, 'template') ?? {};
  const templateMeta = objectAt(template, 'metadata') ?? {};
  const own: JsonObject = { ...labels, ...objectAt(templateMeta, 'labels') };
  spec['template'] = { ...template, metadata: { ...templateMeta, labels: own } };
  spec['selector'] ??= {};
  job['spec'] = spec;
  const selector = objectAt(spec, 'selector') ?? {};
  const matchLabels: JsonObject = { [UID_LABEL]: uid, ...objectAt(selector, 'matchLabels') };
  spec['selector'] = { ...selector, matchLabels };
  const metadata = objectAt(job, 'metadata') ?? {};
  if (unlabelled.has(job)) job['metadata'] = { ...metadata, labels: { ...own } };
}
