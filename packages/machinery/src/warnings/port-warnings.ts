/** Ports of a pod's containers that stand in each other's way. */
import { listAt, numberAt, stringAt } from '../json/json.ts';
import type { JsonValue } from '../json/json-value.ts';
import { quoted } from '../json/quoting.ts';

interface Port {
  readonly path: string;
  readonly name: string;
  readonly hostIp: string;
  readonly hostPort: number;
}

/** Warnings of all ports of the containers, which come with their paths. */
export function* portWarnings(
  containers: readonly (readonly [JsonValue, string])[],
): Iterable<string> {
  const taken = new Map<string, Port[]>();
  const named: Port[] = [];
  for (const [container, at] of containers) {
    for (const [index, port] of listAt(container, 'ports').entries()) {
      const one: Port = {
        path: `${at}.ports[${index}]`,
        name: stringAt(port, 'name'),
        hostIp: stringAt(port, 'hostIP'),
        hostPort: numberAt(port, 'hostPort'),
      };
      const number = numberAt(port, 'containerPort');
      const protocol = stringAt(port, 'protocol');
      if (one.hostIp !== '' && one.hostPort === 0) {
        const fields = `Name:${one.name} HostPort:0 ContainerPort:${number} Protocol:${protocol}`;
        yield `${one.path}: hostIP set without hostPort: {${fields} HostIP:${one.hostIp}}`;
      }
      const key = `${number}/${protocol}`;
      const others = taken.get(key) ?? [];
      for (const other of others) {
        const clash = clashOf(one, other);
        if (clash !== '') yield `${one.path}: ${clash} port definition with ${other.path}`;
      }
      others.push(one);
      taken.set(key, others);
      if (one.name !== '') named.push(one);
    }
  }
  const names = new Map<string, string>();
  for (const { path, name } of named) {
    const other = names.get(name);
    if (other === undefined) names.set(name, path);
    else {
      const text = `services and probes that select ports by name will use ${other}`;
      yield `${path}: duplicate port name ${quoted(name)} with ${other}, ${text}`;
    }
  }
}

function clashOf(one: Port, other: Port): string {
  if (one.hostIp === other.hostIp && one.hostPort === other.hostPort) return 'duplicate';
  if (one.hostPort === 0 || other.hostPort === 0) return 'overlapping';
  if (one.hostPort !== other.hostPort) return '';
  return (one.hostIp === '') === (other.hostIp === '') ? '' : 'dangerously ambiguous';
}
