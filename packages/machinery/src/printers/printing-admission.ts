/** Printers of webhooks and admission policies, and of aggregated API services. */
import type { JsonObject } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';
import { ageText } from './printing-age.ts';
import { columnsOf, conditionOf, nameOf, type Printer } from './printing-columns.ts';
import { formatLabelSelector } from '../selectors/selectors.ts';

const webhookPrinter: Printer = {
  columns: columnsOf('Name, Webhooks integer, Age'),
  row: (o, nowMs) => ({ cells: [nameOf(o), listAt(o, 'webhooks').length, ageText(o, nowMs)] }),
};

function policyPrinter(column: string, field: string): Printer {
  return {
    columns: columnsOf(`Name, ${column} integer, ParamKind, Age`),
    row(o, nowMs) {
      const kind = objectAt(o, 'spec', 'paramKind');
      const text = `${stringAt(kind, 'apiVersion')}/${stringAt(kind, 'kind')}`;
      return {
        cells: [
          nameOf(o),
          listAt(o, 'spec', field).length,
          kind === undefined ? '<unset>' : text,
          ageText(o, nowMs),
        ],
      };
    },
  };
}

const policyBindingPrinter: Printer = {
  columns: columnsOf('Name, PolicyName, ParamRef, Age'),
  row: (o, nowMs) => ({
    cells: [nameOf(o), stringAt(o, 'spec', 'policyName'), paramRef(o), ageText(o, nowMs)],
  }),
};

/** A parameter without a namespace may be cluster-scoped; the table cannot tell, so `*` it is. */
function paramRef(binding: JsonObject): string {
  const ref = objectAt(binding, 'spec', 'paramRef');
  const name = stringAt(ref, 'name');
  if (name !== '') return `${stringAt(ref, 'namespace') || '*'}/${name}`;
  const selector = objectAt(ref, 'selector');
  return selector === undefined ? '<unset>' : formatLabelSelector(selector);
}

const apiServicePrinter: Printer = {
  columns: columnsOf('Name, Service, Available, Age'),
  row(o, nowMs) {
    const service = objectAt(o, 'spec', 'service');
    const available = conditionOf(o, 'Available');
    const status = stringAt(available, 'status');
    const reason = stringAt(available, 'reason');
    const place = `${stringAt(service, 'namespace')}/${stringAt(service, 'name')}`;
    return {
      cells: [
        nameOf(o),
        service === undefined ? 'Local' : place,
        available === undefined ? 'Unknown' : status === 'True' ? status : `${status} (${reason})`,
        ageText(o, nowMs),
      ],
    };
  },
};

const GROUP = 'admissionregistration.k8s.io';

export const ADMISSION_PRINTERS: readonly (readonly [string, Printer])[] = [
  [`${GROUP}/MutatingWebhookConfiguration`, webhookPrinter],
  [`${GROUP}/ValidatingWebhookConfiguration`, webhookPrinter],
  [`${GROUP}/ValidatingAdmissionPolicy`, policyPrinter('Validations', 'validations')],
  [`${GROUP}/MutatingAdmissionPolicy`, policyPrinter('Mutations', 'mutations')],
  [`${GROUP}/ValidatingAdmissionPolicyBinding`, policyBindingPrinter],
  [`${GROUP}/MutatingAdmissionPolicyBinding`, policyBindingPrinter],
  ['apiregistration.k8s.io/APIService', apiServicePrinter],
  [
    'storagemigration.k8s.io/StorageVersionMigration',
    {
      columns: columnsOf('Name, Resource').map((column) => ({ ...column, format: '' })),
      row(o) {
        const resource = objectAt(o, 'spec', 'resource');
        const text = `${stringAt(resource, 'resource')}.${stringAt(resource, 'group')}`;
        return { cells: [nameOf(o), text] };
      },
    },
  ],
];
