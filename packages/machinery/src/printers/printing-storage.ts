/** Printers of volumes, claims, classes and CSI. */
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, objectAt, stringAt, valueAt } from '../json/json.ts';
import { ageText } from './printing-age.ts';
import { columnsOf, isBeingDeleted, nameOf, type Printer } from './printing-columns.ts';

const ACCESS_MODES = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
] as const;

function accessModes(modes: readonly JsonValue[]): string {
  return ACCESS_MODES.filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',');
}

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

function classOf(object: JsonObject): string {
  return (
    stringAt(object, 'metadata', 'annotations', CLASS_ANNOTATION) ||
    stringAt(object, 'spec', 'storageClassName')
  );
}

function orUnset(object: JsonObject, ...path: string[]): string {
  const value = valueAt(object, ...path);
  return typeof value === 'string' ? value : '<unset>';
}

function phase(object: JsonObject): string {
  return isBeingDeleted(object) ? 'Terminating' : stringAt(object, 'status', 'phase');
}

const volumePrinter: Printer = {
  columns: columnsOf(
    'Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, ' +
      'VolumeAttributesClass, Reason, Age, +VolumeMode',
  ),
  row(o, nowMs) {
    const claim = objectAt(o, 'spec', 'claimRef');
    return {
      cells: [
        nameOf(o),
        stringAt(o, 'spec', 'capacity', 'storage') || '0',
        accessModes(listAt(o, 'spec', 'accessModes')),
        stringAt(o, 'spec', 'persistentVolumeReclaimPolicy'),
        phase(o),
        claim === undefined ? '' : `${stringAt(claim, 'namespace')}/${stringAt(claim, 'name')}`,
        classOf(o),
        orUnset(o, 'spec', 'volumeAttributesClassName'),
        stringAt(o, 'status', 'reason'),
        ageText(o, nowMs),
        orUnset(o, 'spec', 'volumeMode'),
      ],
    };
  },
};

const claimPrinter: Printer = {
  columns: columnsOf(
    'Name, Status, Volume, Capacity, Access Modes, StorageClass, ' +
      'VolumeAttributesClass, Age, +VolumeMode',
  ),
  row(o, nowMs) {
    const volume = stringAt(o, 'spec', 'volumeName');
    const isBound = volume !== '';
    return {
      cells: [
        nameOf(o),
        phase(o),
        volume,
        isBound ? stringAt(o, 'status', 'capacity', 'storage') || '0' : '',
        isBound ? accessModes(listAt(o, 'status', 'accessModes')) : '',
        classOf(o),
        orUnset(o, 'spec', 'volumeAttributesClassName'),
        ageText(o, nowMs),
        orUnset(o, 'spec', 'volumeMode'),
      ],
    };
  },
};

const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

const classPrinter: Printer = {
  columns: columnsOf(
    'Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age',
  ),
  row(o, nowMs) {
    const annotations = objectAt(o, 'metadata', 'annotations');
    const isDefault = DEFAULT_ANNOTATIONS.some((key) => stringAt(annotations, key) === 'true');
    return {
      cells: [
        nameOf(o) + (isDefault ? ' (default)' : ''),
        stringAt(o, 'provisioner'),
        stringAt(o, 'reclaimPolicy') || 'Delete',
        stringAt(o, 'volumeBindingMode') || 'Immediate',
        valueAt(o, 'allowVolumeExpansion') === true,
        ageText(o, nowMs),
      ],
    };
  },
};

const driverPrinter: Printer = {
  columns: columnsOf(
    'Name, AttachRequired boolean, PodInfoOnMount boolean, StorageCapacity boolean, ' +
      'TokenRequests, RequiresRepublish boolean, Modes, Age',
  ),
  row(o, nowMs) {
    const requests = valueAt(o, 'spec', 'tokenRequests');
    const audiences = listAt(o, 'spec', 'tokenRequests').map((one) => stringAt(one, 'audience'));
    const modes = listAt(o, 'spec', 'volumeLifecycleModes');
    return {
      cells: [
        nameOf(o),
        valueAt(o, 'spec', 'attachRequired') !== false,
        valueAt(o, 'spec', 'podInfoOnMount') === true,
        valueAt(o, 'spec', 'storageCapacity') === true,
        Array.isArray(requests) ? audiences.join(',') : '<unset>',
        valueAt(o, 'spec', 'requiresRepublish') === true,
        modes.filter((mode) => typeof mode === 'string').join(',') || '<none>',
        ageText(o, nowMs),
      ],
    };
  },
};

export const STORAGE_PRINTERS: readonly (readonly [string, Printer])[] = [
  ['/PersistentVolume', volumePrinter],
  ['/PersistentVolumeClaim', claimPrinter],
  ['storage.k8s.io/StorageClass', classPrinter],
  ['storage.k8s.io/CSIDriver', driverPrinter],
  [
    'storage.k8s.io/CSINode',
    {
      columns: columnsOf('Name, Drivers integer, Age'),
      row: (o, nowMs) => ({
        cells: [nameOf(o), listAt(o, 'spec', 'drivers').length, ageText(o, nowMs)],
      }),
    },
  ],
  [
    'storage.k8s.io/VolumeAttributesClass',
    {
      columns: columnsOf('Name, DriverName, Age'),
      row: (o, nowMs) => ({ cells: [nameOf(o), stringAt(o, 'driverName'), ageText(o, nowMs)] }),
    },
  ],
  [
    'storage.k8s.io/VolumeAttachment',
    {
      columns: columnsOf('Name, Attacher, PV, Node, Attached boolean, Age').map((column) =>
        column.name === 'Attacher' ? { ...column, format: 'name' } : column,
      ),
      row: (o, nowMs) => ({
        cells: [
          nameOf(o),
          stringAt(o, 'spec', 'attacher'),
          stringAt(o, 'spec', 'source', 'persistentVolumeName'),
          stringAt(o, 'spec', 'nodeName'),
          valueAt(o, 'status', 'attached') === true,
          ageText(o, nowMs),
        ],
      }),
    },
  ],
];
