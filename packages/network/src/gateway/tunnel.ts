/**
 * The other way to IPv4: a tunnel of WireGuard from each node to a gateway that has it.
 *
 * The address of node `i` in the tunnel is the base of the pool plus `i` plus two, so gateway and
 * nodes need to tell each other nothing but their public keys.
 */
import { addressText, prefixText, type Prefix } from '../plan/prefix.ts';

export interface TunnelPeer {
  readonly number: number;
  readonly publicKey: string;
}

/** Nodes behind routers that forget who spoke keep the way open. */
const KEEPALIVE_SECONDS = 25;
export const TUNNEL_PORT = 51_820;
/** Ethernet's 1500 without the headers of IPv6, UDP and WireGuard. */
const MTU = 1420;
const KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

export function isKey(text: string): boolean {
  return KEY.test(text);
}

/** Address of node `number`; the first of the pool is the gateway's. */
export function tunnelAddress(pool: Prefix, number: number): string {
  return addressText(pool.base + 2n + BigInt(number), pool.bits);
}

/** `wg-quick` of the gateway: all peers, and their packets under its own address. */
export function gatewayTunnel(
  pool: Prefix,
  privateKey: string,
  uplink: string,
  peers: readonly TunnelPeer[],
): string {
  const source = prefixText(pool);
  const chain =
    'type nat hook postrouting priority srcnat; ' +
    `ip saddr ${source} oifname "${uplink}" masquerade;`;
  const rule = `table ip megaplane_tunnel { chain postrouting { ${chain} } }`;
  const lines = [
    '[Interface]',
    `Address = ${addressText(pool.base + 1n, pool.bits)}/${pool.length}`,
    `ListenPort = ${TUNNEL_PORT}`,
    `PrivateKey = ${privateKey}`,
    `MTU = ${MTU}`,
    'PostUp = sysctl -w net.ipv4.ip_forward=1',
    `PostUp = nft '${rule}'`,
    'PostDown = nft delete table ip megaplane_tunnel',
  ];
  for (const { number, publicKey } of peers) {
    const address = tunnelAddress(pool, number);
    lines.push('', '[Peer]', `PublicKey = ${publicKey}`, `AllowedIPs = ${address}/32`);
  }
  return `${lines.join('\n')}\n`;
}

/** `wg-quick` of a node: all of IPv4 goes to the gateway. */
export function nodeTunnel(
  pool: Prefix,
  number: number,
  privateKey: string,
  gateway: { readonly endpoint: string; readonly publicKey: string },
): string {
  return `[Interface]
Address = ${tunnelAddress(pool, number)}/32
PrivateKey = ${privateKey}
MTU = ${MTU}

[Peer]
PublicKey = ${gateway.publicKey}
Endpoint = ${gateway.endpoint}
AllowedIPs = 0.0.0.0/0
PersistentKeepalive = ${KEEPALIVE_SECONDS}
`;
}
