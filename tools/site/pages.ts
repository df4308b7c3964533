/** Which pages the site has, in the order in which somebody reads them. */

export interface PageGroup {
  readonly title: string;
  /** Paths below `docs/`, without `.md`. */
  readonly pages: readonly string[];
}

export const GROUPS: readonly PageGroup[] = [
  { title: 'Begin', pages: ['tutorial', 'up', 'commands', 'packages'] },
  {
    title: 'How to',
    pages: [
      ...['howto/operator-of-etcd', 'howto/author-of-a-controller'],
      ...['howto/author-of-a-scheduler', 'howto/fleet-operator'],
      'howto/platform-of-definitions',
    ],
  },
  { title: 'Store', pages: ['store', 'backup', 'etcd-flags', 'store-inside'] },
  {
    title: 'API server',
    pages: [
      ...['apiserver', 'apiserver-flags', 'access', 'admission', 'apply', 'watches', 'fairness'],
      ...['crds', 'aggregation', 'differences'],
    ],
  },
  { title: 'Scheduler and controllers', pages: ['scheduler', 'controllers'] },
  { title: 'Simulated nodes', pages: ['nodes', 'stages'] },
  { title: 'Fleet', pages: ['fleet', 'fleet-demand', 'fleet-shard', 'fleet-providers'] },
  { title: 'Operation', pages: ['monitoring', 'security', 'figures'] },
];

/** Groups that take all further pages of a folder, behind the others and folded. */
export const FOLDERS: readonly { readonly title: string; readonly folder: string }[] = [
  { title: 'Each controller', folder: 'controllers/' },
  { title: 'Decisions', folder: 'decisions/' },
];

/** Takes the pages that stand in no group. */
export const LAST_GROUP = 'More';

/** The first heading of a page. Throws where it has none. */
export function titleOf(path: string, text: string): string {
  const title = /^# (.+)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${path}: has no heading`);
  return title.replaceAll('`', '');
}

/** The anchor of a heading, as the site makes it. */
export function anchorOf(heading: string): string {
  const plain = heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .toLowerCase();
  return plain
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
}
