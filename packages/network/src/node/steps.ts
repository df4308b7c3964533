/**
 * Steps that change a machine, and how each is undone.
 *
 * What a step found is written down before it is done, so that all of it can be undone after a
 * crash, and a second run of the same steps changes nothing.
 */

export const INPUT_FILE_MODE = 0o644;
export const PROGRAM_FILE_MODE = 0o755;
export const SECRET_FILE_MODE = 0o600;

export type Step =
  | {
      readonly kind: 'setting';
      /** Below /proc/sys. */
      readonly path: string;
      readonly value: string;
      /** Kernels and network namespaces without it do. */
      readonly isOptional: boolean;
    }
  | { readonly kind: 'bridge'; readonly name: string; readonly mtu: number }
  | {
      readonly kind: 'address';
      readonly device: string;
      readonly address: string;
      readonly isSix: boolean;
    }
  | {
      readonly kind: 'route';
      readonly prefix: string;
      readonly via: string;
      readonly device: string;
    }
  | { readonly kind: 'deviceRoute'; readonly prefix: string; readonly device: string }
  /** A device of the translator. */
  | { readonly kind: 'tunnel'; readonly name: string; readonly config: string }
  /** A program that goes into the background and writes its number to a file. */
  | {
      readonly kind: 'daemon';
      readonly program: string;
      readonly args: readonly string[];
      readonly pidFile: string;
    }
  /** `undo` empty: it needs none. */
  | {
      readonly kind: 'command';
      readonly words: readonly string[];
      readonly undo: readonly string[];
    }
  | {
      readonly kind: 'nftables';
      readonly table: string;
      readonly family: 'ip' | 'ip6' | 'inet';
      readonly rules: string;
    }
  | { readonly kind: 'file'; readonly path: string; readonly text: string; readonly mode: number }
  | { readonly kind: 'directory'; readonly path: string };

/** What was there before a step, as it is kept to undo it. */
export type Undo =
  | { readonly kind: 'setting'; readonly path: string; readonly value: string }
  | { readonly kind: 'link'; readonly name: string }
  | { readonly kind: 'address'; readonly device: string; readonly address: string }
  | {
      readonly kind: 'route';
      readonly prefix: string;
      readonly via: string;
      readonly device: string;
    }
  | { readonly kind: 'deviceRoute'; readonly prefix: string; readonly device: string }
  | { readonly kind: 'daemon'; readonly program: string; readonly pidFile: string }
  | { readonly kind: 'command'; readonly words: readonly string[] }
  | { readonly kind: 'table'; readonly family: string; readonly table: string }
  /** `before` undefined: there was none. */
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly before?: string;
      readonly mode?: number;
    }
  | { readonly kind: 'directory'; readonly path: string };

/** As a person would do it by hand. */
export function stepText(step: Step): string {
  switch (step.kind) {
    case 'setting':
      return `sysctl -w ${step.path.replaceAll('/', '.')}=${step.value}`;
    case 'bridge':
      return (
        `ip link add ${step.name} type bridge\n` +
        (step.mtu > 0 ? `ip link set ${step.name} mtu ${step.mtu}\n` : '') +
        `ip link set ${step.name} up`
      );
    case 'address':
      return `ip addr add ${step.address} dev ${step.device}${step.isSix ? ' nodad' : ''}`;
    case 'route':
      return `ip route replace ${step.prefix} via ${step.via} dev ${step.device}`;
    case 'deviceRoute':
      return `ip route replace ${step.prefix} dev ${step.device}`;
    case 'tunnel':
      return `tayga --config ${step.config} --mktun && ip link set ${step.name} up`;
    case 'daemon':
      return [step.program, ...step.args].join(' ');
    case 'command':
      return step.words.join(' ');
    case 'nftables':
      return `nft -f - <<'END'\n${step.rules}END`;
    case 'directory':
      return `mkdir -p ${step.path}`;
    case 'file': {
      const mode = step.mode.toString(8).padStart(4, '0');
      return `install -D -m ${mode} /dev/stdin ${step.path} <<'END'\n${step.text}END`;
    }
  }
}

export function undoText(undo: Undo): string {
  switch (undo.kind) {
    case 'setting':
      return `sysctl -w ${undo.path.replaceAll('/', '.')}=${undo.value}`;
    case 'link':
      return `ip link del ${undo.name}`;
    case 'address':
      return `ip addr del ${undo.address} dev ${undo.device}`;
    case 'route':
      return `ip route del ${undo.prefix} via ${undo.via} dev ${undo.device}`;
    case 'deviceRoute':
      return `ip route del ${undo.prefix} dev ${undo.device}`;
    case 'daemon':
      return `kill $(cat ${undo.pidFile})`;
    case 'command':
      return undo.words.join(' ');
    case 'table':
      return `nft delete table ${undo.family} ${undo.table}`;
    case 'file':
      return undo.before === undefined ? `rm ${undo.path}` : `restore ${undo.path}`;
    case 'directory':
      return `rmdir ${undo.path}`;
  }
}
