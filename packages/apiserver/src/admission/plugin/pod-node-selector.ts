/**
 * PodNodeSelector: pods of a namespace go to its nodes. The namespace says by an annotation which
 * those are, the configuration says it for those that do not, and which labels are allowed where.
 * Off unless enabled.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { fieldErrorText, invalidValue } from '@megaplane/machinery/fielderrors';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { labelValueErrors, qualifiedNameErrors } from '@megaplane/machinery/names';
import { internalError, unclassified, type Status } from '@megaplane/machinery/status';
import { refuseNameless } from '../../registry/rest/refusal.ts';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const ANNOTATION = 'scheduler.alpha.kubernetes.io/node-selector';
const CLUSTER = 'clusterDefaultNodeSelector';

type Labels = Readonly<Record<string, string>>;
type Read = { readonly labels: Labels } | { readonly refusal: Status };

/** `a=b,c=d`; what is wrong ends the request without a reason, as upstream. */
function labelsIn(text: string): Read {
  const labels: Record<string, string> = {};
  if (text === '') return { labels };
  for (const label of text.split(',')) {
    const parts = label.split('=');
    const [key = '', value = ''] = parts.map((part) => part.trim());
    if (parts.length !== 2) {
      return { refusal: unclassified(`invalid selector: [${parts.join(' ')}]`) };
    }
    const wrongKey = qualifiedNameErrors(key);
    const wrongValue = labelValueErrors(value);
    const error =
      wrongKey.length > 0
        ? invalidValue('<nil>', key, wrongKey.join('; '))
        : invalidValue(`[${key}]`, value, wrongValue.join('; '));
    if (wrongKey.length > 0 || wrongValue.length > 0) {
      return { refusal: unclassified(fieldErrorText(error)) };
    }
    putMember(labels, key, value);
  }
  return { labels };
}

/** The plugin as its `podNodeSelectorPluginConfig` wants it. */
export function podNodeSelector(configuration: JsonValue): AdmissionPlugin {
  const settings = objectAt(configuration, 'podNodeSelectorPluginConfig') ?? {};
  const ofNamespace = ({ world, call }: Admitted): Read => {
    const found = readNamespace(world, call.info.namespace);
    if (found === null) {
      return { refusal: internalError(`namespace ${call.info.namespace} does not exist`) };
    }
    const said = objectAt(found, 'metadata', 'annotations')?.[ANNOTATION];
    return labelsIn(typeof said === 'string' ? said : stringAt(settings, CLUSTER));
  };
  const check = (write: Admitted, own: JsonObject, wanted: Labels): Status | null => {
    if (Object.entries(wanted).some(([key, value]) => (ownMember(own, key) ?? value) !== value)) {
      return refuseNameless(
        write,
        'pod node label selector conflicts with its namespace node label selector',
      );
    }
    const allowed = labelsIn(stringAt(settings, write.call.info.namespace));
    if ('refusal' in allowed) return allowed.refusal;
    const isOpen = Object.keys(allowed.labels).length === 0;
    const isAllowed = Object.entries(own).every(
      ([key, value]) => ownMember(allowed.labels, key) === value,
    );
    if (isOpen || isAllowed) return null;
    return refuseNameless(
      write,
      'pod node label selector labels conflict with its namespace whitelist',
    );
  };
  return {
    name: 'PodNodeSelector',
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'pods' && operation === 'CREATE' && subresource === '',
    mutate: (write) => {
      const spec = objectAt(write.object, 'spec');
      if (spec === undefined) return null;
      const wanted = ofNamespace(write);
      if ('refusal' in wanted) return wanted.refusal;
      const merged: JsonObject = { ...wanted.labels, ...objectAt(spec, 'nodeSelector') };
      const refusal = check(write, merged, wanted.labels);
      const sorted = Object.entries(merged).toSorted(([a], [b]) => (a < b ? -1 : 1));
      if (sorted.length > 0) spec['nodeSelector'] = Object.fromEntries(sorted);
      return refusal;
    },
    validate: (write) => {
      const wanted = ofNamespace(write);
      if ('refusal' in wanted) return wanted.refusal;
      return check(write, objectAt(write.object, 'spec', 'nodeSelector') ?? {}, wanted.labels);
    },
    repeats: () => true,
  };
}
