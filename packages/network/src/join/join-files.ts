/** The files by which a machine joins a cluster; each is a step that can be undone. */
import { INPUT_FILE_MODE, SECRET_FILE_MODE, type Step } from '../node/steps.ts';
import type { Token } from './token.ts';

export interface JoinFacts {
  readonly server: string;
  readonly authority: string;
  readonly token: Token;
  readonly nodeName: string;
  /** Of the node, as its kubelet tells it; '' where that is left to the kubelet. */
  readonly nodeIp: string;
  /** The KubeletConfiguration of the cluster. */
  readonly kubeletConfig: string;
  /** Programs by their paths. */
  readonly kubelet: string;
  readonly megaplane: string;
  readonly hasSystemd: boolean;
  /** The kernel's control groups are those of version 1, which kubelets refuse from 1.35 on. */
  readonly hasOldCgroups: boolean;
  /** Undefined: containerd is left as it is. */
  readonly containerd?: {
    readonly config: string;
    readonly pluginDir: string;
    readonly configDir: string;
  };
  readonly runtimeEndpoint: string;
  /** Arguments of `megaplane network node`, for each start of the machine; empty: none. */
  readonly network: readonly string[];
}

const KUBERNETES = '/etc/kubernetes';
const UNITS = '/etc/systemd/system';
export const KUBELET_DIR = '/var/lib/kubelet';
/** Fact of the record: names, as JSON, of what was in the kubelet's directory before it joined. */
export const KUBELET_HAD = 'kubeletHad';
export const KUBELET_UNIT = 'kubelet.service';
export const NETWORK_UNIT = 'megaplane-network.service';
/** A kubelet with it has its own certificate, and the token is of no use any more. */
export const KUBELET_KUBECONFIG: string = `${KUBERNETES}/kubelet.conf`;

/** The command line of the kubelet, without the program. */
export function kubeletArgs({ nodeName, nodeIp, runtimeEndpoint }: JoinFacts): readonly string[] {
  return [
    `--bootstrap-kubeconfig=${KUBERNETES}/bootstrap-kubelet.conf`,
    `--kubeconfig=${KUBELET_KUBECONFIG}`,
    `--config=${KUBELET_DIR}/config.yaml`,
    `--container-runtime-endpoint=${runtimeEndpoint}`,
    `--hostname-override=${nodeName}`,
    ...(nodeIp === '' ? [] : [`--node-ip=${nodeIp}`]),
  ];
}

/** Files and directories, in the order in which they are made. */
export function joinSteps(facts: JoinFacts): readonly Step[] {
  const { authority, containerd, hasSystemd, network } = facts;
  const file = (path: string, text: string, mode = INPUT_FILE_MODE): Step => ({
    ...{ kind: 'file', path, text, mode },
  });
  const steps: Step[] = [
    { kind: 'directory', path: `${KUBERNETES}/manifests` },
    { kind: 'directory', path: KUBELET_DIR },
    file(`${KUBERNETES}/pki/ca.crt`, authority),
    file(`${KUBERNETES}/bootstrap-kubelet.conf`, bootstrapKubeconfig(facts), SECRET_FILE_MODE),
    file(`${KUBELET_DIR}/config.yaml`, withCgroups(facts)),
  ];
  if (containerd !== undefined) {
    const { config, pluginDir, configDir } = containerd;
    steps.push(file(config, containerdConfig(pluginDir, configDir, hasSystemd)));
  }
  if (hasSystemd && network.length > 0) {
    steps.push(file(`${UNITS}/${NETWORK_UNIT}`, networkUnit(facts)));
  }
  if (hasSystemd) steps.push(file(`${UNITS}/${KUBELET_UNIT}`, kubeletUnit(facts)));
  return steps;
}

/** Without systemd nobody else keeps cgroups: the kubelet makes them itself. */
function withCgroups({ kubeletConfig, hasSystemd, hasOldCgroups }: JoinFacts): string {
  const config = hasSystemd
    ? kubeletConfig
    : kubeletConfig.replace(/^cgroupDriver: systemd$/m, 'cgroupDriver: cgroupfs');
  const isTold = !hasOldCgroups || /^failCgroupV1:/m.test(config);
  return isTold ? config : `${config.trimEnd()}\nfailCgroupV1: false\n`;
}

function bootstrapKubeconfig({ server, authority, token }: JoinFacts): string {
  const data = Buffer.from(authority).toString('base64');
  return `apiVersion: v1
kind: Config
clusters:
- name: megaplane
  cluster:
    certificate-authority-data: ${data}
    server: ${server}
contexts:
- name: bootstrap
  context: { cluster: megaplane, user: bootstrap }
current-context: bootstrap
users:
- name: bootstrap
  user:
    token: ${token.id}.${token.secret}
`;
}

function kubeletUnit(facts: JoinFacts): string {
  const { kubelet, network } = facts;
  const after = network.length > 0 ? ` ${NETWORK_UNIT}` : '';
  return `[Unit]
Description=kubelet of a Megaplane cluster
Wants=network-online.target containerd.service
After=network-online.target containerd.service${after}

[Service]
ExecStart=${[kubelet, ...kubeletArgs(facts)].map(unitWord).join(' \\\n  ')}
Restart=always
RestartSec=10
StartLimitIntervalSec=0
KillMode=process
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
`;
}

/** Rules of the kernel are gone after a restart of the machine: they are made again before pods. */
function networkUnit({ megaplane, network }: JoinFacts): string {
  return `[Unit]
Description=network of pods of this node
Wants=network-online.target
After=network-online.target
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=${[megaplane, ...network].map(unitWord).join(' ')}

[Install]
WantedBy=multi-user.target
`;
}

/** A word of a command line as systemd reads it. */
function unitWord(word: string): string {
  const escaped = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
  if (/^[\w@%+=:,./[\]-]+$/.test(escaped)) return escaped;
  return `"${escaped.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** Of containerd 1.x and, by its own conversion, 2.x. */
function containerdConfig(pluginDir: string, configDir: string, hasSystemd: boolean): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `# Written by \`megaplane node join\`; \`megaplane node reset\` brings back what was here.
version = 2

[${cri}]
  [${cri}.cni]
    bin_dir = ${JSON.stringify(pluginDir)}
    conf_dir = ${JSON.stringify(configDir)}
  [${cri}.containerd]
    [${cri}.containerd.runtimes]
      [${cri}.containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        [${cri}.containerd.runtimes.runc.options]
          SystemdCgroup = ${hasSystemd}
`;
}
