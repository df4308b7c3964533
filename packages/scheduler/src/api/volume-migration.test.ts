import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  attachableOfSources,
  driverOfProvisioner,
  migrationOf,
  saidMigration,
} from './volume-migration.ts';

const ALL = migrationOf({ metadata: { name: 'n' } }, true);
const PLUGINS = 'storage.alpha.kubernetes.io/migrated-plugins';

test('the same volume has one handle, however it is named', () => {
  const aws = { driver: 'ebs.csi.aws.com', handle: 'vol-1' };
  for (const volumeID of ['vol-1', 'aws://us-east-1a/vol-1', 'aws:///vol-1']) {
    assert.deepEqual(attachableOfSources({ awsElasticBlockStore: { volumeID } }, {}, ALL), aws);
  }
  const wrong = { awsElasticBlockStore: { volumeID: 'aws://us-east-1a/disk' } };
  const text = 'Invalid format for AWS volume (aws://us-east-1a/disk)';
  const told = attachableOfSources(wrong, {}, ALL);
  assert.equal(told, `failed to translate Kubernetes ID to EBS Volume ID ${text}`);
});

test('a disk of two zones belongs to their region, and of no region to nobody', () => {
  const sources = { gcePersistentDisk: { pdName: 'd' } };
  const at = (zone: string): unknown => {
    const found = attachableOfSources(sources, { 'topology.kubernetes.io/zone': zone }, ALL);
    return typeof found === 'string' ? found : found?.handle;
  };
  assert.equal(at('us-central1-a'), 'projects/UNSPECIFIED/zones/us-central1-a/disks/d');
  const regional = 'projects/UNSPECIFIED/regions/us-central1/disks/d';
  assert.equal(at('us-central1-a__us-central1-b'), regional);
  const failed = 'failed to get region from zones:';
  const regions = 'map[us-central1:{} us-west1:{}]';
  assert.equal(
    at('us-west1-b__us-central1-a'),
    `${failed} multiple or no regions gotten from zones, got: ${regions}`,
  );
  const form = 'zone in unexpected format, expected: {locale}-{region}-{zone}';
  assert.equal(at('z1__z2'), `${failed} ${form}, got: z1`);
});

test('an Azure disk that is not managed is left to no driver', () => {
  const disk = (kind: string): unknown =>
    attachableOfSources({ azureDisk: { diskURI: 'u', kind } }, {}, ALL);
  assert.deepEqual(disk('managed'), { driver: 'disk.csi.azure.com', handle: 'u' });
  assert.equal(disk('Shared'), 'kind(Shared) is not supported in csi migration');
});

test('storage counts for its driver on every node; Portworx before 1.36 if that says so', () => {
  const sources = { cinder: { volumeID: 'v' } };
  const annotations = { [PLUGINS]: 'kubernetes.io/gce-pd,kubernetes.io/portworx-volume' };
  const told = migrationOf({ metadata: { name: 'n', annotations } }, false);
  const silent = migrationOf({ metadata: { name: 'n' } }, false);
  const found = { driver: 'cinder.csi.openstack.org', handle: 'v' };
  for (const one of [told, silent, ALL]) {
    assert.deepEqual(attachableOfSources(sources, {}, one), found);
  }
  assert.equal(attachableOfSources(sources, {}, migrationOf(undefined, true)), null);
  const portworx = [told, silent, ALL].map((one) =>
    driverOfProvisioner('kubernetes.io/portworx-volume', one),
  );
  assert.deepEqual(portworx, ['pxd.portworx.com', '', 'pxd.portworx.com']);
  const said = saidMigration({ metadata: { name: 'n', annotations } });
  assert.equal(driverOfProvisioner('kubernetes.io/aws-ebs', said), '');
  assert.equal(driverOfProvisioner('kubernetes.io/gce-pd', said), 'pd.csi.storage.gke.io');
  assert.equal(driverOfProvisioner('kubernetes.io/azure-file', ALL), '');
  assert.equal(driverOfProvisioner('csi.example.com', silent), 'csi.example.com');
});
