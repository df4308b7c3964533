/** Printers of services, endpoints, ingresses and policies. */
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, numberAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText } from './printing-age.ts';
import { columnsOf, labelsText, nameOf, shortList, type Printer } from './printing-columns.ts';
import { formatLabelSelector } from '../selectors/selectors.ts';

const ITEMS_SHOWN_MAX = 3;

function texts(object: JsonValue | undefined, ...path: string[]): string[] {
  return listAt(object, ...path).filter((one) => typeof one === 'string');
}

const servicePrinter: Printer = {
  columns: columnsOf('Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      stringAt(o, 'spec', 'type'),
      texts(o, 'spec', 'clusterIPs')[0] ?? (stringAt(o, 'spec', 'clusterIP') || '<none>'),
      externalIp(o),
      ports(o),
      ageText(o, nowMs),
      labelsText(objectAt(o, 'spec', 'selector')),
    ],
  }),
};

function externalIp(service: JsonObject): string {
  const external = texts(service, 'spec', 'externalIPs');
  switch (stringAt(service, 'spec', 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || '<none>';
    case 'LoadBalancer':
      return [...balancerAddresses(service), ...external].join(',') || '<pending>';
    case 'ExternalName':
      return stringAt(service, 'spec', 'externalName');
    default:
      return '<unknown>';
  }
}

function balancerAddresses(object: JsonObject): string[] {
  const found = listAt(object, 'status', 'loadBalancer', 'ingress').map(
    (one) => stringAt(one, 'ip') || stringAt(one, 'hostname'),
  );
  return [...new Set(found.filter((text) => text !== ''))].sort();
}

function ports(service: JsonObject): string {
  const found = listAt(service, 'spec', 'ports').map((port) => {
    const nodePort = numberAt(port, 'nodePort');
    const number = nodePort > 0 ? `:${nodePort}` : '';
    return `${numberAt(port, 'port')}${number}/${stringAt(port, 'protocol') || 'TCP'}`;
  });
  return found.join(',') || '<none>';
}

const endpointsPrinter: Printer = {
  columns: columnsOf('Name, Endpoints, Age'),
  row: (o, nowMs) => ({ cells: [nameOf(o), endpointsText(o), ageText(o, nowMs)] }),
};

function endpointsText(endpoints: JsonObject): string {
  const subsets = listAt(endpoints, 'subsets');
  if (subsets.length === 0) return '<none>';
  const found: string[] = [];
  for (const subset of subsets) {
    const addresses = listAt(subset, 'addresses').map((one) => stringAt(one, 'ip'));
    const numbers = listAt(subset, 'ports').map((port) => numberAt(port, 'port'));
    if (numbers.length === 0) found.push(...addresses);
    for (const number of numbers) found.push(...addresses.map((ip) => joinHostPort(ip, number)));
  }
  return shortList(found, ITEMS_SHOWN_MAX, '');
}

function joinHostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

const slicePrinter: Printer = {
  columns: columnsOf('Name, AddressType, Ports, Endpoints, Age'),
  row(o, nowMs) {
    const numbers = listAt(o, 'ports').map((port) => {
      const number = valueAt(port, 'port');
      return typeof number === 'number' ? String(number) : stringAt(port, 'name') || '*';
    });
    const addresses = listAt(o, 'endpoints').flatMap((one) => texts(one, 'addresses'));
    return {
      cells: [
        nameOf(o),
        stringAt(o, 'addressType'),
        shortList(numbers, ITEMS_SHOWN_MAX, '<unset>'),
        shortList(addresses, ITEMS_SHOWN_MAX, '<unset>'),
        ageText(o, nowMs),
      ],
    };
  },
};

const ingressPrinter: Printer = {
  columns: columnsOf('Name, Class, Hosts, Address, Ports, Age'),
  row: (o, nowMs) => ({
    cells: [
      nameOf(o),
      stringAt(o, 'spec', 'ingressClassName') || '<none>',
      hosts(o),
      balancerAddresses(o).join(','),
      listAt(o, 'spec', 'tls').length > 0 ? '80, 443' : '80',
      ageText(o, nowMs),
    ],
  }),
};

/** Rules beyond the third host count as more, whether they name a host or not. */
function hosts(ingress: JsonObject): string {
  const rules = listAt(ingress, 'spec', 'rules');
  const found: string[] = [];
  let hasMore = false;
  for (const rule of rules) {
    if (found.length === ITEMS_SHOWN_MAX) hasMore = true;
    const host = stringAt(rule, 'host');
    if (!hasMore && host !== '') found.push(host);
  }
  if (found.length === 0) return '*';
  const shown = found.join(',');
  return hasMore ? `${shown} + ${rules.length - ITEMS_SHOWN_MAX} more...` : shown;
}

const ingressClassPrinter: Printer = {
  columns: columnsOf('Name, Controller, Parameters, Age'),
  row(o, nowMs) {
    const parameters = objectAt(o, 'spec', 'parameters');
    const group = stringAt(parameters, 'apiGroup');
    const kind = `${stringAt(parameters, 'kind')}${group === '' ? '' : `.${group}`}`;
    const text = parameters === undefined ? '<none>' : `${kind}/${stringAt(parameters, 'name')}`;
    return { cells: [nameOf(o), stringAt(o, 'spec', 'controller'), text, ageText(o, nowMs)] };
  },
};

const addressPrinter: Printer = {
  // Upstream fills a third cell, for which it declares no column; clients skip it.
  columns: columnsOf('Name, ParentRef'),
  row(o, nowMs) {
    const parent = objectAt(o, 'spec', 'parentRef');
    const group = stringAt(parent, 'group');
    const resource = `${stringAt(parent, 'resource')}${group === '' ? '' : `.${group}`}`;
    const place = [resource.toLowerCase(), stringAt(parent, 'namespace'), stringAt(parent, 'name')];
    const text = place.filter((part) => part !== '').join('/');
    return { cells: [nameOf(o), parent === undefined ? '<none>' : text, ageText(o, nowMs)] };
  },
};

export const NETWORK_PRINTERS: readonly (readonly [string, Printer])[] = [
  ['/Service', servicePrinter],
  ['/Endpoints', endpointsPrinter],
  ['discovery.k8s.io/EndpointSlice', slicePrinter],
  ['networking.k8s.io/Ingress', ingressPrinter],
  ['networking.k8s.io/IngressClass', ingressClassPrinter],
  ['networking.k8s.io/IPAddress', addressPrinter],
  [
    'networking.k8s.io/ServiceCIDR',
    {
      columns: columnsOf('Name, CIDRs, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), texts(o, 'spec', 'cidrs').join(','), ageText(o, nowMs)],
      }),
    },
  ],
  [
    'networking.k8s.io/NetworkPolicy',
    {
      columns: columnsOf('Name, Pod-Selector, Age'),
      row: (o, nowMs) => ({
        cells: [
          nameOf(o),
          formatLabelSelector(valueAt(o, 'spec', 'podSelector')),
          ageText(o, nowMs),
        ],
      }),
    },
  ],
];
