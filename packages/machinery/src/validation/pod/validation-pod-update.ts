/** What may change in a pod: almost nothing. */

import { ownMember } from '@megaplane/base/members';
import { forbiddenField, invalidValue, printed, required } from '../../meta/fielderrors.ts';
import { goDiff, goForm, goValueOf } from '../../gotext/go-value-format.ts';
import { listAt, objectAt, stringAt } from '../../json/json.ts';
import { isNumber, isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { rangeText } from '../../meta/names.ts';
import { changePodAnnotations, checkSameProfiles, MIRROR } from './validation-pod-annotations.ts';
import { checkImageSpaces } from './validation-containers.ts';
import { changeEphemeral, changeSize, NO_FIELD } from './validation-pod-parts.ts';
import { updatePodStatus } from './validation-pod-status.ts';
import { checkNotes, checkPodSpec, checkPodTemplate, checkTolerations } from './validation-pods.ts';
import { eachObject, isSame, type Findings } from '../field/validation-rules.ts';
import type { RuleTable } from '../field/rule-table.ts';

const INT32_MAX = 2147483647;
const UPDATABLE =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,' +
  '`spec.tolerations` (only additions to existing tolerations),' +
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export const POD_RULES: RuleTable = {
  pods: {
    create: createPod,
    update: updatePod,
    subresources: {
      status: updatePodStatus,
      ephemeralcontainers: (found, next, previous) => {
        checkPod(found, next);
        changeEphemeral(found, next, previous);
      },
      resize: (found, next, previous) => {
        checkPod(found, next);
        changeSize(found, next, previous);
      },
    },
  },
  podtemplates: {
    create: (found, object) => {
      checkPodTemplate(found, 'template', objectAt(object, 'template') ?? {});
    },
  },
};

function createPod(found: Findings, pod: JsonObject): void {
  const spec = objectAt(pod, 'spec') ?? {};
  const annotations = objectAt(pod, 'metadata', 'annotations');
  checkPod(found, pod);
  if (annotations?.[MIRROR] !== undefined && listAt(spec, 'resourceClaims').length > 0) {
    found.push(forbiddenField(NO_FIELD, 'static pods do not support resource claims'));
  }
  if (listAt(spec, 'ephemeralContainers').length > 0) {
    found.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (stringAt(spec, 'nodeName') !== '' && listAt(spec, 'schedulingGates').length > 0) {
    const text = 'cannot be set until all schedulingGates have been cleared';
    found.push(forbiddenField('spec.nodeName', text));
  }
  checkSameProfiles(found, 'spec', annotations, spec);
}

function checkPod(found: Findings, pod: JsonObject): void {
  const spec = objectAt(pod, 'spec') ?? {};
  checkNotes(found, 'metadata.annotations', objectAt(pod, 'metadata', 'annotations'), spec);
  checkPodSpec(found, 'spec', spec, false, stringAt(pod, 'metadata', 'name'));
  checkImageSpaces(found, 'spec.containers', listAt(spec, 'containers'));
  checkImageSpaces(found, 'spec.initContainers', listAt(spec, 'initContainers'));
}

function updatePod(found: Findings, next: JsonObject, previous: JsonObject): void {
  const spec = objectAt(next, 'spec') ?? {};
  const stored = objectAt(previous, 'spec') ?? {};
  checkPod(found, next);
  changePodAnnotations(found, next, previous);
  // upstream looks at them once more where they change
  checkNotes(found, 'metadata.annotations', objectAt(next, 'metadata', 'annotations'), spec);
  for (const field of ['containers', 'initContainers']) {
    if (!checkImages(found, `spec.${field}`, listAt(spec, field), listAt(stored, field))) return;
  }
  if (!checkDeadline(found, spec, stored)) return;
  checkAddedTolerations(found, spec, stored);
  checkRemovedGates(found, spec, stored);
  const munged = withUpdatable(spec, stored);
  if (listAt(stored, 'schedulingGates').length > 0) allowTightening(found, munged, stored);
  if (isSame(munged, stored)) return;
  const text = `pod updates may not change fields other than ${UPDATABLE}`;
  found.push(forbiddenField('spec', `${text}\n${goDiff('core.v1.PodSpec', stored, munged)}`));
}

/** False where nothing more can be said. */
function checkImages(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
  stored: readonly JsonValue[],
): boolean {
  if (containers.length !== stored.length) {
    found.push(forbiddenField(path, 'pod updates may not add or remove containers'));
    return false;
  }
  eachObject(containers, path, (container, at) => {
    const image = stringAt(container, 'image');
    if (image === '') found.push(required(`${at}.image`));
    if (image === image.trim()) return;
    const text = 'must not have leading or trailing whitespace';
    found.push(invalidValue(`${at}.image`, image, text));
  });
  return true;
}

function checkDeadline(found: Findings, spec: JsonObject, stored: JsonObject): boolean {
  const path = 'spec.activeDeadlineSeconds';
  const before = stored['activeDeadlineSeconds'];
  const after = spec['activeDeadlineSeconds'];
  if (!isNumber(after)) {
    if (before === undefined) return true;
    const text = 'must not update from a positive integer to nil value';
    found.push(invalidValue(path, null, text));
    return true;
  }
  if (after < 0 || after > INT32_MAX) {
    found.push(invalidValue(path, after, rangeText(0, INT32_MAX)));
    return false;
  }
  if (!isNumber(before) || before >= after) return true;
  found.push(invalidValue(path, after, 'must be less than or equal to previous value'));
  return false;
}

function checkAddedTolerations(found: Findings, spec: JsonObject, stored: JsonObject): void {
  const tolerations = listAt(spec, 'tolerations');
  for (const old of listAt(stored, 'tolerations')) {
    if (tolerations.some((toleration) => isSameToleration(toleration, old))) continue;
    const text = 'existing toleration can not be modified except its tolerationSeconds';
    found.push(forbiddenField('spec.tolerations', text));
    return;
  }
  checkTolerations(found, 'spec.tolerations', tolerations);
}

function isSameToleration(left: JsonValue, right: JsonValue): boolean {
  if (!isObject(left) || !isObject(right)) return false;
  return isSame({ ...left, tolerationSeconds: null }, { ...right, tolerationSeconds: null });
}

function checkRemovedGates(found: Findings, spec: JsonObject, stored: JsonObject): void {
  const known = new Set(listAt(stored, 'schedulingGates').map((gate) => stringAt(gate, 'name')));
  eachObject(listAt(spec, 'schedulingGates'), 'spec.schedulingGates', (gate, at) => {
    const name = stringAt(gate, 'name');
    if (known.has(name)) return;
    const text = `only deletion is allowed, but found new scheduling gate '${name}'`;
    found.push(forbiddenField(`${at}.name`, text));
  });
}

/** The new spec with everything that may change as it was. */
function withUpdatable(spec: JsonObject, stored: JsonObject): JsonObject {
  const munged: JsonObject = {
    ...spec,
    activeDeadlineSeconds: stored['activeDeadlineSeconds'],
    schedulingGates: stored['schedulingGates'],
    tolerations: stored['tolerations'],
  };
  for (const field of ['containers', 'initContainers']) {
    const before = listAt(stored, field);
    const containers = listAt(spec, field).map((container, index) => {
      const old = before[index];
      return isObject(container) && isObject(old)
        ? { ...container, image: old['image'] }
        : container;
    });
    // none are printed as null, however they were sent
    if (containers.length > 0) munged[field] = containers;
    else delete munged[field];
  }
  const grace = stored['terminationGracePeriodSeconds'];
  if (isNumber(grace) && grace < 0 && spec['terminationGracePeriodSeconds'] === 1) {
    munged['terminationGracePeriodSeconds'] = grace;
  }
  return munged;
}

/** A pod that waits for its gates may be made more choosy about nodes. */
function allowTightening(found: Findings, munged: JsonObject, stored: JsonObject): void {
  const before = objectAt(stored, 'nodeSelector') ?? {};
  const after = objectAt(munged, 'nodeSelector') ?? {};
  if (!isSame(after, before)) {
    if (Object.keys(before).some((key) => before[key] !== ownMember(after, key))) {
      const text = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
      found.push(invalidValue('spec.nodeSelector', after, text));
    }
    munged['nodeSelector'] = stored['nodeSelector'];
  }
  const old = objectAt(stored, 'affinity', 'nodeAffinity');
  const next = objectAt(munged, 'affinity', 'nodeAffinity');
  if (isSame(old, next)) return;
  checkNodeAffinityChange(found, next, old);
  const affinity = { ...objectAt(munged, 'affinity'), nodeAffinity: old };
  munged['affinity'] = isSame(affinity, { nodeAffinity: undefined }) ? undefined : affinity;
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function checkNodeAffinityChange(
  found: Findings,
  next: JsonObject | undefined,
  old: JsonObject | undefined,
): void {
  const path = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  const before = listAt(old, REQUIRED, 'nodeSelectorTerms');
  const after = listAt(next, REQUIRED, 'nodeSelectorTerms');
  if (before.length === 0) return;
  if (before.length !== after.length) {
    const text = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    const terms = after.map((term) => goValueOf('core.v1.NodeSelectorTerm', term));
    const value = after.length === 0 ? null : printed(JSON.stringify(terms));
    found.push(invalidValue(path, value, text));
    return;
  }
  for (const [index, term] of after.entries()) {
    if (!hasOnlyAdditions(term, before[index])) {
      const text = 'only additions are allowed (no mutations or deletions)';
      const value = goForm('core.v1.NodeSelectorTerm', term);
      found.push(invalidValue(`${path}[${index}]`, value, text));
    }
  }
}

function hasOnlyAdditions(next: JsonValue, old: JsonValue | undefined): boolean {
  return ['matchExpressions', 'matchFields'].every((field) => {
    const before = listAt(old, field);
    const after = listAt(next, field);
    if (before.length === 0 && after.length > 0) {
      return listAt(old, 'matchExpressions').length + listAt(old, 'matchFields').length > 0;
    }
    return before.every((item, index) => isSame(item, after[index]));
  });
}
