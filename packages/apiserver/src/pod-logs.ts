/** pods/log and the other ways into a running pod, as far as a server without kubelets answers. */
import { invalidValue } from '@megaplane/machinery/fielderrors';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { badRequest, invalid, notFound, serviceUnavailable } from '@megaplane/machinery/status';
import { defineSubresource, type SubresourceContext } from './subresource.ts';
import { readStored } from './writing.ts';

/** Registers them. */
export function definePodLogs(): void {
  defineSubresource('pods/log', 'get', readLog);
  for (const name of ['exec', 'attach', 'portforward', 'proxy']) {
    for (const verb of ['get', 'create']) defineSubresource(`pods/${name}`, verb, connect);
  }
  for (const verb of ['get', 'create', 'update', 'patch', 'delete']) {
    defineSubresource('nodes/proxy', verb, connect);
    defineSubresource('services/proxy', verb, connect);
  }
}

function readLog(context: SubresourceContext): void {
  const { call, world, served } = context;
  const { name } = call.info;
  const tail = call.query.integer('tailLines');
  if (!tail.ok) {
    call.fail(tail.status);
    return;
  }
  if (tail.value !== null && tail.value < 0) {
    const fault = invalidValue('tailLines', tail.value, 'must be greater than or equal to 0');
    call.fail(invalid({ group: '', name: 'PodLogOptions' }, name, [fault]));
    return;
  }
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, name));
    return;
  }
  const fault = containerFault(stored.object, name, call.query.text('container'));
  if (fault !== '') call.fail(badRequest(fault));
  else if (stringAt(stored.object, 'spec', 'nodeName') === '') call.send(204, null, null);
  else noKubelet(context, stringAt(stored.object, 'spec', 'nodeName'));
}

function containerFault(pod: JsonObject, name: string, wanted: string): string {
  const names = ['containers', 'initContainers', 'ephemeralContainers'].flatMap((field) =>
    listAt(pod, 'spec', field).map((one) => stringAt(one, 'name')),
  );
  if (wanted !== '')
    return names.includes(wanted) ? '' : `container ${wanted} is not valid for pod ${name}`;
  const containers = listAt(pod, 'spec', 'containers').map((one) => stringAt(one, 'name'));
  if (containers.length <= 1) return '';
  const choice = containers.join(' ');
  return `a container name must be specified for pod ${name}, choose one of: [${choice}]`;
}

function connect(context: SubresourceContext): void {
  const { call, world, served } = context;
  const stored = readStored(world, call, served);
  if (stored === null) {
    call.fail(notFound(served.plural, call.info.name));
    return;
  }
  const node = stringAt(stored.object, 'spec', 'nodeName');
  if (served.resource.resource === 'pods' && node === '') {
    call.fail(badRequest(`pod ${call.info.name} does not have a host assigned`));
    return;
  }
  noKubelet(context, node);
}

function noKubelet({ call }: SubresourceContext, node: string): void {
  const where = node === '' ? call.info.name : node;
  call.fail(
    serviceUnavailable(
      `${call.info.subresource} needs the kubelet of ${JSON.stringify(where)}, ` +
        'and this server does not pass requests through to kubelets',
    ),
  );
}
