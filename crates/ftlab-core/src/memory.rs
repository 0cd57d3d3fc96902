//! Large arrays and prefetching: the only `unsafe` of the core, each with its proof.
//!
//! A simulated drive is a few arrays that are touched at random. Looking ahead and prefetching is worth two times on a
//! 64 GiB drive, and huge pages another quarter.

/// Asks the processor to bring `slice[index]` into its cache; an index out of range is ignored.
#[inline(always)]
#[expect(
    unsafe_code,
    reason = "a prefetch of an address inside a live slice has no architectural effect"
)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    if let Some(element) = slice.get(index) {
        #[cfg(target_arch = "x86_64")]
        // Proof: `element` is a valid reference, and prefetching never faults or changes memory.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = element;
    }
}

/// As [`prefetch`]; of an index out of range, the last element: without a jump, as half of those would be guessed wrongly where many
/// indices say that there is none.
#[inline(always)]
pub fn prefetch_or_last<T>(slice: &[T], index: usize) {
    prefetch(slice, index.min(slice.len().wrapping_sub(1)));
}

/// A bit for each of eight numbers: whether it is `wanted`. Eight comparisons at once, without jumps.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "every x86-64 processor has SSE2, and values in registers are safe"
    )
)]
pub fn which_are(numbers: &[u32; 8], wanted: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // Proof: the instructions exist on every processor of this architecture and touch no memory.
    unsafe {
        use std::arch::x86_64::{
            _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32, _mm_set1_epi32,
        };
        let [a, b, c, d, e, f, g, h] = numbers.map(u32::cast_signed);
        let wanted = _mm_set1_epi32(wanted.cast_signed());
        let low = _mm_cmpeq_epi32(_mm_set_epi32(d, c, b, a), wanted);
        let high = _mm_cmpeq_epi32(_mm_set_epi32(h, g, f, e), wanted);
        let halves = _mm_packs_epi32(low, high);
        _mm_movemask_epi8(_mm_packs_epi16(halves, halves)).cast_unsigned() & 0xFF
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let bits = numbers.iter().enumerate();
        bits.fold(0, |all, (at, &number)| all | u32::from(number == wanted) << at)
    }
}

/// A vector of `len` copies of `value` whose memory the kernel is asked to back with huge pages.
pub fn huge<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(len);
    advise_huge(&mut array);
    array.resize(len, value);
    array
}

/// Room for as many elements again, or `least`, in memory that the kernel is asked to back with huge pages.
#[cold]
pub fn double_huge<T>(array: &mut Vec<T>, least: usize) {
    array.reserve_exact(array.len().max(least));
    advise_huge(array);
}

/// Hints that the reserved memory of `array` should be backed by huge pages; without effect where they are off.
#[expect(unsafe_code, reason = "madvise over memory that the vector owns")]
fn advise_huge<T>(array: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const HUGE: usize = 2 << 20;
        let start = (array.as_mut_ptr() as usize).next_multiple_of(PAGE);
        let end = (array.as_mut_ptr() as usize + array.capacity() * size_of::<T>()) / PAGE * PAGE;
        if end > start && end - start >= 2 * HUGE {
            // Proof: [start, end) lies inside the vector's own allocation, and MADV_HUGEPAGE changes only how the
            // kernel backs it, never its contents. A refusal is harmless, so the result is not looked at.
            unsafe {
                let _ = libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = array;
}
